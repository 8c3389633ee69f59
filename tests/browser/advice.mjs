// SPDX-License-Identifier: Apache-2.0
// Advice in the page of a run: what each gains and how to see it, what is for another program; its texts stay text. And the page as it is printed:
// light, its figures within the paper, no controls.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, finish, open, run, source, work } from './common.mjs';

const HOSTILE = '<img src=x onerror="window.hurt = 1">';
const sample = join(source, 'tests/unit/report/golden/sample.json');
const { command } = JSON.parse(readFileSync(sample));
const item = (gain, more) => ({
  kind: 'hint',
  conditional: false,
  title: `Pin x ${HOSTILE}`,
  text: 'It, `x`, is read once.',
  now: 'uvm',
  then: 'uvm+advise=1:pin',
  time_now_ps: 4e9,
  time_then_ps: 3e9,
  gain_percent: gain,
  evidence: [],
  commands: ['farfault sim x.fft'],
  ...more,
});
const advise = (name, list, more) =>
  writeFileSync(
    join(work, name),
    JSON.stringify({
      schema: 1,
      program: command,
      machine: 'gtx480',
      baseline: 'uvm',
      summary: 'Now, with uvm: 4.00 ms.',
      verdict: 'Less memory is viable.',
      advice: list,
      ...more,
    }).replace(/"gain_percent":(\d+)([,}])/g, '"gain_percent":$1.0$2'),
  );

advise('advice.json', [item(25), item(2.5, { commands: [] }), item(60, { conditional: true, title: 'Declare what kernels use' })]);
run('report', sample, '--html', 'with.html', '--advice', 'advice.json');
const page = await open('with.html');
const texts = (selector) => page.locator(selector).allTextContents();
expect('what it gains', await texts('#advice-list .gain strong'), ['saves 25.0 %', 'saves 2.50 %']);
expect('the title is text', (await texts('#advice-list h3'))[0], `Pin x ${HOSTILE}`);
expect('a name in the text', (await texts('#advice-list p code'))[0], 'x');
expect('the times', (await texts('#advice-list .detail'))[0], '4.00 ms under uvm, 3.00 ms under uvm+advise=1:pin.');
expect('how to see it', await texts('#advice-list pre'), ['farfault sim x.fft\n']);
expect('for another program', await texts('#advice-later-list h3'), ['Declare what kernels use']);
expect(
  'the summary and the verdict',
  [await page.textContent('#advice-summary'), await page.textContent('#advice-verdict')],
  ['Now, with uvm: 4.00 ms.', 'Less memory is viable.'],
);
expect('no warning', await texts('#advice-warnings p'), []);
const width = (i) => page.evaluate((at) => document.querySelectorAll('#advice-list .gain-bar i')[at].getBoundingClientRect().width, i);
expect('bars are as long as the gain', Math.round((await width(0)) / (await width(1))), 10);
expect('it is among the contents', (await texts('#contents a')).includes('Advice'));

// ---- on paper ----
await page.click('#theme'); // dark
await page.setViewportSize({ width: 1200, height: 900 });
await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
await page.emulateMedia({ media: 'print' });
await page.setViewportSize({ width: 700, height: 900 });
expect('printed light', await page.evaluate(() => document.documentElement.dataset.theme), 'light');
expect(
  'without controls',
  [await page.isVisible('#theme'), await page.isVisible('#search'), await page.isVisible('#bar-choices')],
  [false, false, false],
);
expect(
  'figures within the paper',
  await page.evaluate(() =>
    [...document.querySelectorAll('canvas')].every((canvas) => canvas.getBoundingClientRect().right <= window.innerWidth),
  ),
);
expect('and everything else', await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
await page.emulateMedia({ media: null });
await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
expect('dark again', await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
expect('trouble', page.trouble, []);

// ---- other advice, and none ----
advise('other.json', [], { program: './other', machine: 'a100' });
run('report', sample, '--html', 'other.html', '--advice', 'other.json');
const other = await open('other.html');
expect('what it is for', await other.locator('#advice-warnings p').allTextContents(), [
  'The advice is for another command: ./other.',
  'The advice is for another machine: a100.',
]);
expect('no advice', (await other.textContent('#advice-list')).startsWith('Nothing that was simulated'));
expect('trouble in it', other.trouble, []);
run('report', sample, '--html', 'without.html');
const without = await open('without.html');
expect('not asked for', await without.isVisible('#advice'), false);
expect('trouble without', without.trouble, []);
await finish();
