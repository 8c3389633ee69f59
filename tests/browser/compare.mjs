// SPDX-License-Identifier: Apache-2.0
// The page of `farfault compare --html`: times of each run, what changed with the words of the command line, sorted and filtered; several files.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { column, expect, farfault, finish, hasColour, open, work } from './common.mjs';

const HOSTILE = '</script><img src=x onerror="window.hurt = 1">';
const manager = (memory, ms, more) => ({
  memory,
  machine: 'gtx480',
  complete: true,
  time_ps: ms * 1e9,
  kernel_ps: ms * 5e8,
  launches: 1,
  faults: ms * 10,
  h2d_bytes: 1 << 20,
  kernels: [{ name: HOSTILE, launches: 1, time_ps: ms * 5e8 }],
  allocations: [{ name: 'x', id: 1, address: 4096, bytes: 4096, h2d_bytes: ms * 1000 }],
  ...more,
});
const file = (name, runs, more) =>
  writeFileSync(
    join(work, name),
    JSON.stringify({ schema: 1, version: '0.1.0', command: './app', complete: true, notes: [], host: {}, runs, ...more }),
  );
const compare = (...args) => {
  try {
    execFileSync(farfault, ['compare', ...args], { cwd: work, stdio: 'ignore', timeout: 60000 });
    return 0;
  } catch ({ status }) {
    return status;
  }
};
file('a.json', [manager('copy', 4), manager('uvm', 8), manager('tbn', 2)]);
file('b.json', [manager('copy', 4, { h2d_bytes: 0 }), manager('uvm', 12), { ...manager('tbn', 0), error: 'tbn: it does not fit' }]);
file('c.json', [manager('copy', 3), manager('uvm', 160), manager('tbn', 2)], { command: './other', complete: false });

expect('changes', compare('--html', 'ab.html', 'a.json', 'b.json'), 1);
const page = await open('ab.html', { viewport: { width: 1200, height: 1600 } });
const of = (key) => column(page, '#compare-table', key);
expect('its heading', await page.textContent('h1'), 'a.json → b.json');
expect(
  'only its own parts',
  [await page.isVisible('#run-page'), await page.isVisible('#results-page'), await page.isVisible('#compare-page')],
  [false, false, true],
);
expect(
  'in short',
  await page.textContent('#compare-verdict'),
  'b.json: 7 changes in 46 numbers, 6 worse, 1 better. Most effect: copy h2d_bytes (-100.0 %).',
);
expect('times: three, and two that could run', await page.getAttribute('#compare-times', 'data-marks'), '5');
for (const part of ['rest', 's1']) expect(`the bars' ${part}`, await hasColour(page, '#compare-times', part));
const plot = await page.locator('#compare-times canvas').first().boundingBox();
await page.mouse.move(plot.x + 200, plot.y + 40 + (plot.height - 84) / 2);
await page.waitForSelector('#compare-times .tip');
expect("a bar's tip", await page.textContent('#compare-times .tip'), 'uvma.json8.00 msb.json12.0 ms (+50.0 %)');
await page.fill('#compare-table input', 'uvm metric=time');
expect('of which level', (await of('level')).sort(), ['kernel', 'run']);
expect(
  'before and after',
  [await of('before'), await of('after')].map((list) => list.sort()),
  [
    ['4.00 ms', '8.00 ms'],
    ['12.0 ms', '6.00 ms'],
  ],
);
expect('the change', await of('change'), ['+50.0 %', '+50.0 %']);
expect(
  'the effect',
  (await of('effect')).every((text) => / %$/.test(text)),
);
expect('the verdict', await of('verdict'), ['worse', 'worse']);
await page.fill('#compare-table input', 'tbn');
expect('a manager that fails', await of('change'), ['could not run it after']);
await page.fill('#compare-table input', '');
await page.click('[data-choice=allocation]');
expect('allocations alone', [...new Set(await of('level'))], ['allocation']);
expect('bytes', await of('after'), ['11.7 KiB']);
await page.click('[data-choice=kernel]');
expect('a hostile name is text', [...new Set(await of('name'))], [HOSTILE]);
expect('elements made of it', await page.evaluate(() => document.querySelectorAll('img').length), 0);
expect('no choice of one file', await page.locator('#compare-files button').count(), 0);
await page.click('#theme');
expect('the bars when it is dark', await hasColour(page, '#compare-times', 's1'));
await page.setViewportSize({ width: 400, height: 800 });
expect('the page is as wide as the window', await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
expect('trouble', page.trouble, []);

// ---- several files ----
expect('more changes', compare('--html', 'abc.html', 'a.json', 'a.json', 'c.json'), 1);
const several = await open('abc.html');
expect('of each file', await several.locator('#compare-verdict li').count(), 2);
expect('the first is the same', (await several.textContent('#compare-verdict li')).startsWith('a.json: no change in '));
expect('nothing to show of it', await several.textContent('#compare-table .table-status'), 'Nothing changed.');
await several.click('[data-choice=file-1]');
await several.fill('#compare-table input', 'uvm metric=time');
expect('many times as much', await column(several, '#compare-table', 'change'), ['x 20.0', 'x 20.0']);
expect('what differs besides', await several.locator('#compare-warnings p').allTextContents(), [
  'The programs differ: ./app in a.json, ./other in c.json.',
  'The run c.json is incomplete: the program did not end by itself.',
]);
expect('trouble in it', several.trouble, []);
await finish();
