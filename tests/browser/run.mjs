// SPDX-License-Identifier: Apache-2.0
// The page of a run in a real browser: it opens from disk, asks for nothing, draws its figures, sorts, filters and follows its
// selector; what a program calls its kernels stays text; light and dark.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { colours, column, expect, finish, hasColour, open, run, source, until, work } from './common.mjs';

const HOSTILE = '</script><img src=x onerror="window.hurt = 1"><!--<script>window.hurt = 2</script>\u2028{{script}}"farfault:data"';
const HOSTILE_ALLOCATION = '</script><img src=x onerror="window.hurt = 4">'; // names of allocations are shorter

// A run of three managers with numbers that this test knows.
function sample() {
  const allocation = (name, id, bytes, more) => ({
    name,
    id,
    address: 0x200000000000 + id * 0x1000000,
    bytes,
    managed: id > 1,
    pinned: false,
    accesses: 10 * id,
    ...more,
  });
  const manager = (memory, ms, more) => ({
    memory,
    machine: 'gtx480',
    complete: true,
    time_us: ms * 1e3,
    ratio: ms / 2,
    link_utilisation: 0.5,
    tlb_miss_rate: 0.25,
    time_ps: ms * 1e9,
    kernel_ps: ms * 6e8,
    transfer_ps: 8e8,
    overlap_ps: 2e8,
    launches: 4,
    faults: 0,
    h2d_bytes: 1 << 20,
    d2h_bytes: 1 << 19,
    ...more,
    kernels: [
      { name: 'saxpy', launches: 1, time_ps: 2e8, faults: 7 * ms },
      { name: HOSTILE, launches: 3, time_ps: 9e8 },
      { name: 'gemm', launches: 2, time_ps: 5e8, faults: 2000 },
    ],
    allocations: [
      allocation('x', 1, 4096, {}),
      allocation(HOSTILE_ALLOCATION, 2, 1 << 21, { refaults: 3 }),
      allocation('z', 3, 1 << 20, {}),
    ],
  });
  return {
    schema: 1,
    version: '0.1.0',
    command: './app --name "<b>bold</b>"',
    complete: true,
    notes: [`a note with ${HOSTILE}`],
    runs: [
      manager('copy', 2),
      manager('demand', 16, {
        faults: 2930,
        tiers: [
          { name: 'host', capacity_bytes: 1 << 20, peak_bytes: 1 << 20, read_bytes: 5, written_bytes: 6, waits: 0, wait_ps: 0 },
          { name: 'nvme', capacity_bytes: 1 << 30, peak_bytes: 3 << 20, read_bytes: 3 << 20, written_bytes: 1 << 20, waits: 4, wait_ps: 8e9 },
        ],
      }),
      manager(`replay+<i>x</i>`, 4, { faults: 2929 }),
      { ...manager('big', 1), error: 'big: it does not fit' },
    ],
    host: { wall_s: 0.4, cpu_s: 0.7, peak_rss_bytes: 84000000, thread_instructions: 1000 },
  };
}

writeFileSync(join(work, 'run.json'), JSON.stringify(sample()));
run('report', 'run.json', '--html', 'run.html');
const page = await open('run.html');

// ---- it opens, and is inert ----
expect('its title', await page.title(), './app --name "<b>bold</b>" - farfault');
expect('its heading', await page.textContent('h1'), './app --name "<b>bold</b>"');
expect('elements made of names', await page.evaluate(() => document.querySelectorAll('img, b, i:not(.tip i), main script').length), 0);
expect('scripts', await page.evaluate(() => document.scripts.length), 2);
expect('the note', await page.textContent('#notes'), `a note with ${HOSTILE}`);
expect('the failure line', await page.isVisible('#failure'), false);
expect(
  "only the page's own script may run",
  await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.hurt = 3';
    document.body.append(script);
    return window.hurt ?? 'not hurt';
  }),
  'not hurt',
);
await until(() => page.trouble.length > 0);
expect(
  "the browser's word about that",
  page.trouble.splice(0).map((what) => /violates.*Content Security Policy/.test(what)),
  [true],
);
await page.evaluate(() => document.querySelector('body > script:last-child').remove());

// ---- the bars ----
expect('parts of bars', await page.getAttribute('#bars', 'data-marks'), '12');
for (const part of ['kernel', 'both', 'in', 'rest']) expect(`the bars' ${part}`, await hasColour(page, '#bars', part));
const canvas = await page.locator('#bars canvas').first().boundingBox();
await page.mouse.move(canvas.x + 260, canvas.y + 40 + 32 * 2 + 12);
await page.waitForSelector('#bars .tip');
expect("the bar's tip", (await page.textContent('#bars .tip')).includes('replay+<i>x</i>'));
expect('elements made by the tip', await page.evaluate(() => document.querySelectorAll('.tip strong i').length), 0);
await page.click('[data-scale=share]');
expect('the pressed button', await page.getAttribute('[data-scale=share]', 'aria-pressed'), 'true');

// ---- the selector ----
const choices = await page.locator('#manager option').allTextContents();
expect("the selector's managers", choices, ['copy', 'demand', 'replay+<i>x</i>', 'big']);
expect('what it starts with', await page.inputValue('#manager'), '1');
expect('far-faults under demand', (await column(page, '#kernel-table', 'faults')).sort(), ['0', '112', '2000']);
await page.selectOption('#manager', '2');
expect('far-faults under replay', (await column(page, '#kernel-table', 'faults')).sort(), ['0', '2000', '28']);
expect("the headings' manager", await page.textContent('#kernels h2'), 'Kernels under replay+<i>x</i>');
await page.click('#manager-table tbody tr:nth-child(1)');
expect('a row chooses its manager', await page.inputValue('#manager'), '0');
await page.selectOption('#manager', '3');
expect('a manager that could not run', await page.textContent('#manager-facts'), 'could not run the program: it does not fit');

// ---- the tables ----
await page.selectOption('#manager', '1');
expect('tiers, the drive behind the host', await column(page, '#tier-table', 'name'), ['host', 'nvme']);
expect('read from tiers', await column(page, '#tier-table', 'read_bytes'), ['5 B', '3.00 MiB']);
expect('waited for tiers', await column(page, '#tier-table', 'wait_ps'), ['0 s', '8.00 ms']);
expect('kernels by time', await column(page, '#kernel-table', 'time_ps'), ['900 us', '500 us', '200 us']);
await page.click('#kernel-table th[data-key=faults] button');
expect('kernels by far-faults', await column(page, '#kernel-table', 'faults'), ['2000', '112', '0']);
await page.click('#kernel-table th[data-key=faults] button');
expect('the other way round', await column(page, '#kernel-table', 'faults'), ['0', '112', '2000']);
expect('what is said of the order', await page.getAttribute('#kernel-table th[data-key=faults]', 'aria-sort'), 'ascending');
await page.click('#kernel-table th[data-key=name] button');
expect('kernels by name', (await column(page, '#kernel-table', 'name')).slice(1), ['gemm', 'saxpy']);
await page.fill('#kernel-table input', 'SAX');
expect('kernels with a word', await column(page, '#kernel-table', 'name'), ['saxpy']);
expect('how many are kept', await page.textContent('#kernel-table .table-status'), '1 of 3 rows');
await page.fill('#kernel-table input', 'faults>100 launches<=1');
expect('kernels by comparisons', await column(page, '#kernel-table', 'name'), ['saxpy']);
await page.fill('#kernel-table input', 'nothing has this name');
expect('no kernels', await column(page, '#kernel-table', 'name'), []);
expect('allocations by size', await column(page, '#allocation-table', 'bytes'), ['2.00 MiB', '1.00 MiB', '4.00 KiB']);
expect('a hostile allocation', (await column(page, '#allocation-table', 'name'))[0], HOSTILE_ALLOCATION);
await page.fill('#counter-table input', 'far-faults');
expect('counters with a word in their meaning', (await column(page, '#counter-table', 'name')).includes('fault_wait_ps'));
expect('the exact number', await page.getAttribute('#counter-table tbody tr td', 'title'), null);
await page.fill('#counter-table input', 'time_ps');
expect('the exact number of picoseconds', await page.getAttribute('#counter-table tbody tr td:nth-child(3)', 'title'), '16000000000');

// ---- dark, narrow, and what may never happen ----
const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
await page.click('#theme');
expect('the dark theme', await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
expect('its background', (await page.evaluate(() => getComputedStyle(document.body).backgroundColor)) !== light);
expect("the bars' colour in it", await hasColour(page, '#bars', 'kernel'));
await page.setViewportSize({ width: 400, height: 800 });
expect('the page is as wide as the window', await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
expect('trouble', page.trouble, []);
expect('hurt', await page.evaluate(() => window.hurt ?? 'not hurt'), 'not hurt');
const dark = await open('run.html', { colorScheme: 'dark' });
expect("dark by the system's choice", await dark.evaluate(() => document.documentElement.dataset.theme), 'dark');
expect('the bars in it', (await colours(dark, '#bars')) > 5);
expect('trouble in it', dark.trouble, []);

// ---- a run as farfault writes it, and one without managers ----
run('report', join(source, 'tests/unit/report/golden/sample.json'), '--html', 'golden.html');
const golden = await open('golden.html');
expect(
  'managers of the golden run',
  await golden.locator('#manager option').count(),
  JSON.parse(readFileSync(join(source, 'tests/unit/report/golden/sample.json'))).runs.length,
);
expect('trouble in it', golden.trouble, []);
// ---- memory stacks ----
expect('no stacks, no section', await golden.isVisible('#stacks'), false);
run('report', join(source, 'tests/unit/report/golden/stacks.json'), '--html', 'stacks.html');
const stacks = await open('stacks.html');
const controlled = 'copy+offload=controlled+map=learned';
expect('simulations with stacks', await column(stacks, '#stack-table', 'memory'), ['copy+offload=none+map=baseline', controlled]);
expect('their speed', await column(stacks, '#stack-table', 'speed'), ['1.00x', '1.50x']);
expect('the map that was learned', (await column(stacks, '#stack-table', 'map'))[1], 'learned: 12:13');
expect('bars of speed', await stacks.getAttribute('#stack-bars', 'data-marks'), '2');
await stacks.click('[data-measure=traffic]');
expect('parts of bars of traffic', await stacks.getAttribute('#stack-bars', 'data-marks'), '6');
for (const part of ['s1', 's2', 's3']) expect(`the traffic's ${part}`, await hasColour(stacks, '#stack-bars', part));
await stacks.selectOption('#manager', '1');
expect('the links are of the chosen one', (await stacks.textContent('#stack-links p')).includes(controlled));
const sent = JSON.parse(readFileSync(join(source, 'tests/unit/report/golden/stacks.json'))).runs[1].stacks;
const cell = (row, at) => stacks.getAttribute(`#stack-links tbody tr:nth-child(${row}) td:nth-of-type(${at})`, 'title');
expect('from the GPU to stack 2', await cell(1, 4), `${sent.tx_bytes[2]} bytes`);
expect('from stack 1 to the GPU', await cell(3, 1), `${sent.rx_bytes[1]} bytes`);
expect('from stack 3 to stack 0', await cell(5, 2), `${sent.cross_bytes[3][0]} bytes`);
expect('trouble in it', stacks.trouble, []);
writeFileSync(join(work, 'none.json'), JSON.stringify({ ...sample(), runs: [] }));
run('report', 'none.json', '--html', 'none.html');
const none = await open('none.html');
expect('what is said without managers', (await none.textContent('#warnings')).includes('No memory manager was simulated'));
expect('trouble in it', none.trouble, []);
// ---- without copy, ratios are to the first manager, which is named ----
const without = sample();
without.runs = [without.runs[1], without.runs[2]].map((each) => ({ ...each, ratio: each.time_ps / without.runs[1].time_ps }));
writeFileSync(join(work, 'without.json'), JSON.stringify(without));
run('report', 'without.json', '--html', 'without.html');
const other = await open('without.html');
await other.selectOption('#manager', '0');
expect('the facts of the first', (await other.textContent('#manager-facts')).includes(', 1.00x demand, '));
await other.selectOption('#manager', '1');
expect('the facts of the second', (await other.textContent('#manager-facts')).includes('x demand, '));
const first = await other.locator('#bars canvas').first().boundingBox();
await other.mouse.move(first.x + 260, first.y + 40 + 32 + 12);
await other.waitForSelector('#bars .tip');
expect("what the bar's tip compares with", (await other.textContent('#bars .tip')).includes('ratio to demand'));
expect(
  'what the column compares with',
  (await other.getAttribute('#manager-table th[data-key=ratio] button', 'title')) ?? '',
  'time over that of demand',
);

// ---- where no manager pages, the page begins with the first that could run the program ----
const kept = sample();
kept.runs = [kept.runs[3], kept.runs[0]];
writeFileSync(join(work, 'kept.json'), JSON.stringify(kept));
run('report', 'kept.json', '--html', 'kept.html');
const begins = await open('kept.html');
expect('the first that could run', await begins.inputValue('#manager'), '1');

await finish();
