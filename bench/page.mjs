// SPDX-License-Identifier: Apache-2.0
// page.mjs MODULES PAGE.html [CHROMIUM]: how fast the page of `farfault report --html` is in a headless browser. MODULES: a folder with playwright-core
// (BUILD/web/node_modules). Prints until when something was painted and all figures were drawn, then the frames while each figure over time is zoomed
// and dragged, with the browser's processor time per frame: on a busy machine that says more than the rate.
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, page, chromium = '/usr/bin/chromium'] = process.argv.slice(2);
if (!page) {
  console.error('page.mjs MODULES PAGE.html [CHROMIUM]');
  process.exit(64);
}
const { chromium: engine } = createRequire(join(resolve(modules), 'x.js'))('playwright-core');
const STEPS = 60; // of each figure: half of them zoom in and out, half drag

const browser = await engine.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
const tab = await browser.newPage({ viewport: { width: 1200, height: 900 } });
const system = await browser.newBrowserCDPSession();
const processorMs = async () =>
  (await system.send('SystemInfo.getProcessInfo')).processInfo.reduce(
    (sum, { type, cpuTime }) => sum + (type === 'renderer' ? cpuTime : 0),
    0,
  ) * 1000;

await tab.goto(pathToFileURL(resolve(page)).href);
await tab.waitForTimeout(500); // paint entries come late
const opened = await tab.evaluate(() => ({
  painted: performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
  drawn: performance.getEntriesByType('navigation')[0].loadEventEnd,
}));
console.log(
  `first paint ${Math.round(opened.painted)} ms, all drawn ${Math.round(opened.drawn)} ms, processor ${Math.round(await processorMs())} ms`,
);

// A step per frame, of wheel and pointer events as a reader makes them. Returns the frames' lengths in ms.
const interact = (selector) =>
  tab.evaluate(
    async ([wanted, steps]) => {
      const canvas = document.querySelector(`${wanted} canvas`);
      const { left, top, width, height } = canvas.getBoundingClientRect();
      const at = (x) => ({ bubbles: true, cancelable: true, clientX: left + width * x, clientY: top + Math.min(80, height / 2) });
      const target = canvas.parentElement;
      const frames = [];
      let last = await new Promise(requestAnimationFrame);
      for (let i = 0; i < steps; i++) {
        if (i < steps / 2) target.dispatchEvent(new WheelEvent('wheel', { ...at(0.5), ctrlKey: true, deltaY: i % 20 < 15 ? -120 : 120 }));
        else {
          if (i === steps / 2) target.dispatchEvent(new MouseEvent('mousedown', { ...at(0.5), button: 0, buttons: 1 }));
          target.dispatchEvent(new MouseEvent('mousemove', { ...at(0.5 + 0.1 * Math.sin(i / 4)), button: 0, buttons: 1 }));
        }
        const now = await new Promise(requestAnimationFrame);
        frames.push(now - last);
        last = now;
      }
      target.dispatchEvent(new MouseEvent('mouseup', { ...at(0.5), button: 0 }));
      return frames;
    },
    [selector, STEPS],
  );

for (const figure of process.env.FIGURES?.split(' ') ?? ['#side-figure', '#timeline', '#heatmap']) {
  const there = await tab.locator(`${figure} canvas`).count();
  if (!there) continue;
  await tab.locator(figure).scrollIntoViewIfNeeded();
  await tab.waitForTimeout(300);
  const before = await processorMs();
  const frames = await interact(figure);
  const spent = (await processorMs()) - before;
  const total = frames.reduce((sum, length) => sum + length, 0);
  console.log(
    `${figure}: ${Math.round((1000 * frames.length) / total)} frames/s, longest ${Math.round(Math.max(...frames))} ms, ` +
      `${frames.filter((length) => length > 17.5).length} of ${frames.length} late, processor ${(spent / frames.length).toFixed(1)} ms a frame`,
  );
}
await browser.close();
