// SPDX-License-Identifier: Apache-2.0
// A field that finds kernels, launches, allocations and lines of the source of the chosen manager, however many there are: their texts are put
// into lower case once, when the first letter is typed, and only the first matches of each kind become elements.
import { count } from './format.js';
import { element } from './page.js';

const FIRST = 6; // of each kind

/* groups(): [{title, rows, text(row), note(row), go(row)}] of what can be found now; go() takes the reader there. `extra(text)`: what else is to be
 * said of this text, as {text, note, go}; go is left out if there is nowhere to go; null: nothing.
 * Returns {reset()}: what can be found has changed. */
export function makeSearch(field, panel, groups, extra) {
  const known = new Map(); // rows -> texts
  let shown = [];

  function matches({ rows, text }, words) {
    if (!known.has(rows))
      known.set(
        rows,
        rows.map((row) => text(row).toLowerCase()),
      );
    const texts = known.get(rows);
    const found = [];
    let total = 0;
    for (let i = 0; i < texts.length; i++) {
      if (!words.every((word) => texts[i].includes(word))) continue;
      total++;
      if (found.length < FIRST) found.push(rows[i]);
    }
    return { found, total };
  }

  function entry({ text, note, go }) {
    const content = [element('span', { class: 'found-text' }, text), element('span', { class: 'found-note' }, note)];
    if (!go) return element('p', { class: 'found' }, content);
    const leave = () => {
      close();
      go();
    };
    return element('button', { type: 'button', class: 'found', title: text, onclick: leave }, content);
  }

  function close() {
    panel.hidden = true;
    field.setAttribute('aria-expanded', 'false');
  }

  function fill() {
    const typed = field.value.trim().toLowerCase();
    panel.hidden = !typed;
    field.setAttribute('aria-expanded', String(!panel.hidden));
    if (!typed) return;
    const words = typed.split(/\s+/);
    const parts = [];
    const more = extra(typed);
    if (more) parts.push(entry(more));
    for (const group of groups()) {
      const { found, total } = matches(group, words);
      if (!total) continue;
      parts.push(
        element('h3', {}, `${group.title} `, element('span', {}, total > found.length ? `first ${found.length} of ${count(total)}` : '')),
      );
      parts.push(...found.map((row) => entry({ text: group.text(row), note: group.note(row), go: () => group.go(row) })));
    }
    if (!parts.length) parts.push(element('p', { class: 'found-nothing' }, 'Nothing has all of these words.'));
    panel.replaceChildren(...parts);
    shown = [...panel.querySelectorAll('button')];
  }

  // The arrows go through the field and what was found.
  function move(event) {
    if (event.key === 'Escape') {
      close();
      field.focus();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || panel.hidden) return;
    event.preventDefault();
    const at = shown.indexOf(document.activeElement) + step;
    (at < 0 ? field : shown[Math.min(at, shown.length - 1)])?.focus();
  }

  field.addEventListener('input', fill);
  field.addEventListener('focus', fill);
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') shown[0]?.click();
    else move(event);
  });
  panel.addEventListener('keydown', move);
  document.addEventListener('click', ({ target }) => {
    if (!panel.contains(target) && target !== field) close();
  });
  document.addEventListener('keydown', (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName);
    if (event.key !== '/' || typing || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    field.focus();
  });
  return {
    reset() {
      known.clear();
      close();
    },
  };
}
