// SPDX-License-Identifier: Apache-2.0
// The page of `farfault reproduce --html`: what is counted, the picture beside the rows, and the table of the ideas together, whose gains and losses are in colour.
import { expect, finish, open, run } from './common.mjs';

const colour = (page, selector) => page.evaluate((cell) => getComputedStyle(document.querySelector(cell)).color, selector);
const tooWide = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
// Of each picture: whether it is drawn within the text, and no letter of it outside.
const pictures = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll('svg')].map((svg) => {
      const around = svg.getBoundingClientRect();
      const within = (box) => box.left >= around.left - 1 && box.right <= around.right + 1 && box.top >= around.top - 1 && box.bottom <= around.bottom + 1;
      const texts = [...svg.querySelectorAll('text')].map((text) => text.getBoundingClientRect());
      return around.width > 300 && around.right <= innerWidth && texts.length > 10 && texts.every(within);
    }),
  );

// A paper's rows.
run('reproduce', 'wilt2017', '--size', 'small', '--jobs', '2', '--html', 'paper.html', '--csv', 'paper.csv');
const paper = await open('paper.html');
expect('title', await paper.title(), 'farfault reproduce');
expect('nothing asked for', paper.trouble, []);
expect('pictures', await pictures(paper), [true]);
expect('as wide as the window', await tooWide(paper), false);
const counts = await paper.locator('table').first().locator('tr').nth(1).locator('td').allTextContents();
const shown = (word) => paper.locator(`tr.${word}`).count();
expect('rows that count', [await shown('yes'), await shown('fitted')].map(String), [counts[3], counts[4]]);
expect('in all', String((await shown('yes')) + (await shown('no'))), counts[2]);
expect('rows within are in colour', (await colour(paper, 'tr.yes td.w')) === (await colour(paper, 'tr.yes td')), false);
await paper.locator('a').first().click();
expect('the link leads to the paper', await paper.evaluate(() => document.querySelector(location.hash).getBoundingClientRect().top < innerHeight));

// A telephone's screen: the page is no wider, what is wider moves in its own place, and the picture's letters can be read.
const narrow = (file) => open(file, { viewport: { width: 400, height: 800 }, isMobile: true });
async function expectNarrow(what, file) {
  const small = await narrow(file);
  expect(`${what}: as wide as the screen`, await small.evaluate(() => [innerWidth, document.documentElement.scrollWidth]), [400, 400]);
  const letters = await small.evaluate(() =>
    Math.min(
      ...[...document.querySelectorAll('svg text')].map((text) => {
        const { a, b } = text.getScreenCTM(); // turned ones, too
        return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
      }),
    ),
  );
  expect(`${what}: letters of ${letters} pixels`, letters > 9);
  const widths = await small.evaluate(() => [...document.querySelectorAll('section td:first-child')].filter((cell) => cell.offsetParent).map((cell) => cell.clientWidth));
  expect(`${what}: names have room`, widths.length > 5 && widths.every((width) => width > 100));
}
await expectNarrow('paper', 'paper.html');

// A reader who has chosen dark: the page is dark, its letters are light, and rows within keep a colour of their own.
const dark = await open('paper.html', { colorScheme: 'dark' });
const brightness = (text) => text.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
expect('dark: the page', brightness(await dark.evaluate(() => getComputedStyle(document.body).backgroundColor)) < 60);
for (const cell of ['body', 'a', 'tr.yes td', 'tr.yes td.w', 'td.note'])
  expect(`dark: letters of ${cell}`, brightness(await colour(dark, cell)) > 120);
expect('dark: rows within are in colour', (await colour(dark, 'tr.yes td.w')) === (await colour(dark, 'tr.yes td')), false);

// The ideas together.
run('reproduce', 'combined', '--size', 'small', '--jobs', '2', '--html', 'combined.html');
const page = await open('combined.html');
expect('nothing asked for by the ideas', page.trouble, []);
expect('pictures of the ideas', await pictures(page), [true]);
expect('the ideas are as wide as the window', await tooWide(page), false);
const pairs = page.locator('section table').first();
expect(
  'titles of the pairs',
  await pairs.locator('th').allTextContents(),
  ['pair', 'first alone', 'second alone', 'both', 'over the product', 'lowest', 'highest'],
);
const rows = await pairs.locator('tr').evaluateAll((all) => all.slice(1).map((row) => [...row.children].map((cell) => cell.textContent)));
expect('pairs', rows.length > 8);
// Both over the product of both: the same as the three before it say, up to their digits.
for (const [pair, one, other, both, product] of rows)
  if (!/ and .* and |,/.test(pair)) expect(`${pair}: ${both} of ${one} x ${other}`, Math.abs(both / (one * other) / product - 1) < 0.03);
const plain = await colour(page, 'section table td.n:not(.more):not(.less)');
const gains = await colour(page, 'section table td.more');
const losses = await colour(page, 'section table td.less');
expect('gains, losses and the rest have three colours', new Set([plain, gains, losses]).size, 3);
await expectNarrow('ideas', 'combined.html');
const details = page.locator('details');
expect('all rows are closed', await details.locator('table').isVisible(), false);
await details.locator('summary').click();
expect('all rows are opened', await details.locator('table').isVisible());
await finish();
