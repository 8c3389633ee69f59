// SPDX-License-Identifier: Apache-2.0
// What the browser tests share: a headless chromium, checks that count, and pages that must ask nothing of the network.
// Arguments of every test: the folder with playwright-core, the program farfault, the source folder, the workloads' folder, chromium ('' or *-NOTFOUND: none).
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, farfault, source, workloads] = process.argv.slice(2, 6).map((path) => resolve(path));
const chromium = process.argv[6];
if (!chromium || chromium.endsWith('NOTFOUND')) {
  console.log('skipped: no chromium is installed (Debian: chromium)');
  process.exit(77);
}
const { chromium: engine } = createRequire(join(modules, 'x.js'))('playwright-core');

export const work = mkdtempSync(join(tmpdir(), 'farfault-browser-'));
export { farfault, source, workloads };
let passed = 0;
let failed = 0;

export function expect(what, got, wanted = true) {
  if (JSON.stringify(got) === JSON.stringify(wanted)) passed++;
  else {
    failed++;
    console.log(`wrong: ${what}: ${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
  }
}

// Runs farfault; its stderr and a status other than 0 are shown as failures.
export function run(...args) {
  return execFileSync(farfault, args, { cwd: work, encoding: 'utf8', timeout: 60000 });
}

// A saved run of these managers, as a program './app' leaves it.
export const savedRun = (runs) => ({ schema: 1, version: '0.1.0', command: './app', complete: true, notes: [], host: {}, runs });

const browser = await engine.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });

// (The browser's advice about reading canvases is about these tests' own reading.)
// Opens a file of the work folder, or the address of `farfault view`, which may ask its server. page.trouble: everything that a page must not do.
export async function open(file, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, ...options });
  page.setDefaultTimeout(30000);
  page.trouble = [];
  const served = file.startsWith('http://127.0.0.1:');
  const url = served ? file : pathToFileURL(join(work, file)).href;
  page.on('console', (message) => !/willReadFrequently/.test(message.text()) && page.trouble.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => page.trouble.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    page.trouble.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => {
    if (request.url() !== url && !(served && request.url().startsWith(url))) page.trouble.push(`request: ${request.url().slice(0, 100)}`);
  });
  await page.goto(url);
  return page;
}

// Waits until something that comes by itself (a message of the browser) is there, at most 20 s.
export async function until(there) {
  for (let i = 0; i < 400 && !there(); i++)
    await new Promise((done) => {
      setTimeout(done, 50);
    });
}

// How many different colours the canvases of a figure have: one or two if nothing was drawn.
export const colours = (page, figure) =>
  page.evaluate((selector) => {
    const found = new Set();
    for (const canvas of document.querySelectorAll(`${selector} canvas`)) {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) found.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    }
    return found.size;
  }, figure);

// Whether some pixel of a figure has the colour of the style's variable.
export const hasColour = (page, figure, name) =>
  page.evaluate(
    ([selector, variable]) => {
      const hex = getComputedStyle(document.documentElement).getPropertyValue(`--${variable}`).trim();
      const wanted = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
      for (const canvas of document.querySelectorAll(`${selector} canvas`)) {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255 && wanted.every((c, k) => data[i + k] === c)) return true;
      }
      return false;
    },
    [figure, name],
  );

// The texts of a table's column, by the data-key of its title.
export const column = (page, table, key) =>
  page.evaluate(
    ([holder, wanted]) => {
      const at = [...document.querySelectorAll(`${holder} thead th`)].findIndex((title) => title.dataset.key === wanted);
      return [...document.querySelectorAll(`${holder} tbody tr`)].map((row) => row.children[at].textContent);
    },
    [table, key],
  );

export async function finish() {
  await browser.close();
  rmSync(work, { recursive: true });
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed || passed < 2 ? 1 : 0);
}
