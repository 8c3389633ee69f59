// SPDX-License-Identifier: Apache-2.0
// `farfault view` in a real browser: the page as it is served; with --live it is loaded again when its file is another one, but not while it is paused, and shows
// the end of the run.
import { spawn } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, farfault, finish, open, savedRun, until, work } from './common.mjs';

const manager = (ms) => ({
  memory: 'copy',
  machine: 'gtx480',
  complete: true,
  time_us: ms * 1e3,
  ratio: 1,
  link_utilisation: 0.5,
  tlb_miss_rate: 0.25,
  time_ps: ms * 1e9,
  kernels: [],
  allocations: [],
});
// In one step, as farfault does.
function write(command, changes) {
  writeFileSync(join(work, 'aside'), JSON.stringify({ ...savedRun([manager(2)]), command, ...changes }));
  renameSync(join(work, 'aside'), join(work, 'run.ffr'));
}

// Starts `farfault view`: its address, and how it ended.
async function serve(...args) {
  const child = spawn(farfault, ['view', ...args, 'run.ffr'], { cwd: work, stdio: ['ignore', 'pipe', 'ignore'] });
  const server = { child, url: '' };
  child.stdout.on('data', (text) => {
    server.url += text;
  });
  child.on('exit', (status) => {
    server.status = status;
  });
  await until(() => server.url.endsWith('\n'));
  server.url = server.url.trim();
  return server;
}

write('./before');
let server = await serve();
let page = await open(server.url);
expect('the page of the run', await page.textContent('#title'), './before');
expect('asks nothing but itself', page.trouble.filter((text) => !/favicon/.test(text) && !/404/.test(text)), []);
server.child.kill('SIGINT');
await until(() => server.status !== undefined);
expect('Ctrl-C', server.status, 0);
await page.close();

write('./first', { complete: false, running: process.pid });
server = await serve('--live');
page = await open(server.url);
const inside = page.frameLocator('#page');
const title = async (wanted) => {
  try {
    await inside.locator('#title', { hasText: wanted }).waitFor({ timeout: 10000 });
    return true;
  } catch {
    return inside.locator('#title').textContent();
  }
};
expect('the run so far', await title('./first'));
expect('is said to go on', await page.textContent('#state'), 'the run goes on: times and totals so far');
expect('in the page, too', /Written while the program ran/.test(await inside.locator('#warnings').textContent()));
write('./second', { complete: false, running: process.pid });
expect('news come by themselves', await title('./second'));
await page.click('#pause');
write('./third', { complete: false, running: process.pid });
await page.waitForTimeout(4500);
expect('but not while it is paused', await title('./second'));
write('./last');
expect('the end comes in any case', await title('./last'));
expect('and is said', await page.textContent('#state'), 'the run has ended: this is all of it');
await until(() => server.status !== undefined);
expect('then farfault view ends', server.status, 0);
expect('nothing went wrong in the page', page.trouble, []);
await finish();
