// SPDX-License-Identifier: Apache-2.0
// Light and dark: what the system prefers until the reader chooses. The colours are the style's variables, so that the charts and the page
// have one list of them; code that draws with them asks again when `whenChanged` tells so.

// What canvases write with, as page.css has it.
export const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

const system = window.matchMedia('(prefers-color-scheme: dark)');
const listeners = [];
const known = new Map(); // colours; asking the style for each mark would take longer than to draw it
let chosen = null;

const isDark = () => (chosen ?? (system.matches ? 'dark' : 'light')) === 'dark';

function apply() {
  known.clear();
  document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  for (const listener of listeners) listener();
}

export function start(button) {
  const label = () => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    button.title = `Show this page ${isDark() ? 'light' : 'dark'}`;
  };
  listeners.push(label);
  let before = null; // what is printed is light
  window.addEventListener('beforeprint', () => {
    before = chosen;
    chosen = 'light';
    apply();
  });
  window.addEventListener('afterprint', () => {
    chosen = before;
    apply();
  });
  system.addEventListener('change', apply);
  button.addEventListener('click', () => {
    chosen = isDark() ? 'light' : 'dark';
    apply();
  });
  apply();
}

export const whenChanged = (listener) => listeners.push(listener);

// The value of the style's variable --NAME.
export function colour(name) {
  if (!known.has(name)) known.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return known.get(name);
}
