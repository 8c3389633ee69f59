// SPDX-License-Identifier: Apache-2.0
// The roofline: points of the kernels' counters below the lines of the machine, which limit each is nearest to, and no section where a file
// does not know what the machine does.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { column, expect, finish, hasColour, open, run, savedRun, work, workloads } from './common.mjs';

const kernel = (name, us, more) => ({ name, launches: 1, time_ps: us * 1e6, warp_instructions: 1000, ...more });
const manager = (memory, more) => ({
  memory,
  machine: 'gtx480',
  complete: true,
  ratio: 1,
  time_ps: 4e8,
  kernel_ps: 3e8,
  launches: 4,
  peaks: { warp_instructions: 42, l1: 2688, l2: 537.6, dram: 384, link: 16 },
  kernels: [
    // in 100 us: 3.84 GB/s of memory, the tenth part of what it can
    kernel('reads memory', 100, { sectors: 200000, l2_hits: 20000, l2_misses: 120000, dram_read_bytes: 3072000, dram_write_bytes: 768000 }),
    kernel('waits for pages', 50, { sectors: 1000, l2_misses: 1000, dram_write_bytes: 32000, h2d_bytes: 400000, remote_bytes: 200000 }),
    kernel('computes', 10, { warp_instructions: 210000 }),
    kernel('never ran', 0, {}),
    { name: 'has no instructions', launches: 1, time_ps: 5 },
  ],
  allocations: [],
  ...more,
});
const sample = savedRun([
  manager('copy', {}),
  manager('older', { peaks: undefined }),
  manager('big', { error: 'big: it does not fit' }),
  manager('many', { kernels: Array.from({ length: 50 }, (_, i) => kernel(`k${i}`, i + 1, { sectors: 100 })) }),
  manager('idle', { kernels: [] }),
]);
writeFileSync(join(work, 'run.json'), JSON.stringify(sample));
run('report', 'run.json', '--html', 'run.html');
const page = await open('run.html', { viewport: { width: 1200, height: 3200 } });
const of = (key) => column(page, '#roofline-table', key);

expect('kernels that did something, by time', await of('name'), ['reads memory', 'waits for pages', 'computes']);
expect('what limits them', await of('near'), ['GPU memory', 'link, to GPU', 'issue']);
expect('how much of it they use', await of('share'), ['10.0 %', '75.0 %', '50.0 %']);
expect('instructions per second', await of('speed'), ['10.0 M/s', '20.0 M/s', '21.0 G/s']);
expect('per byte of memory', await of('dram'), ['2.6e-4', '0.031', '-']);
expect('per byte of L1', await of('l1'), ['1.6e-4', '0.031', '-']);
expect('points: three levels, and four', await page.getAttribute('#roofline-figure', 'data-marks'), '7');
for (const part of ['s1', 's2', 's3', 's5']) expect(`its ${part}`, await hasColour(page, '#roofline-figure', part));
await page.selectOption('#manager', '3');
expect(
  'many',
  [(await page.textContent('#roofline-notes')).trim(), await page.getAttribute('#roofline-figure', 'data-marks')],
  ['The 40 kernels with most time of 50 are drawn.', '40'],
);
await page.selectOption('#manager', '4');
expect(
  'without a kernel',
  [await page.isVisible('#roofline-figure'), await page.textContent('#roofline-table .table-status')],
  [false, 'No kernel has executed an instruction.'],
);
for (const [value, what] of [
  ['1', 'an older file'],
  ['2', 'a manager that could not run'],
]) {
  await page.selectOption('#manager', value);
  expect(what, await page.isVisible('#roofline'), false);
}
await page.selectOption('#manager', '0');
expect('there again', await page.isVisible('#roofline-figure'));
await page.click('#theme');
expect('when it is dark', await hasColour(page, '#roofline-figure', 's5'));
expect('trouble', page.trouble, []);

// ---- as farfault writes it ----
if (existsSync(join(workloads, 'vectoradd'))) {
  run('record', '-o', 'own.fft', join(workloads, 'vectoradd'), '1000000');
  run('sim', '--machine', 'gtx480', '--memory', 'copy', '-o', 'own.ffr', 'own.fft');
  run('report', 'own.ffr', '--html', 'own.html');
  const own = await open('own.html');
  const used = (await column(own, '#roofline-table', 'share')).map(parseFloat);
  expect('nothing is faster than its limit', used.length === 1 && used[0] > 1 && used[0] <= 100);
  expect('trouble in it', own.trouble, []);
}
await finish();
