// SPDX-License-Identifier: Apache-2.0
// Where the page starts: reads its data, which `farfault report` put into the element #data, and shows it.
import { showComparison } from './compare.js';
import { GLOSSARY } from './glossary.js';
import { byId, element } from './page.js';
import { showResults } from './results.js';
import { showRun } from './run.js';
import * as theme from './theme.js';

theme.start(byId('theme'));
byId('glossary').replaceChildren(
  ...GLOSSARY.flatMap(([word, meaning]) => [element('dt', { id: `word-${word.replace(/\W+/g, '-')}` }, word), element('dd', {}, meaning)]),
);
try {
  const data = JSON.parse(byId('data').textContent);
  if (data.kind === 'results') showResults(data);
  else if (data.kind === 'comparison') showComparison(data);
  else showRun(data);
  const parts = [...document.querySelectorAll('main:not([hidden]) > section:not([hidden]), body > section')];
  byId('contents').replaceChildren(
    ...parts.map((part) => element('a', { href: `#${part.id}` }, part.querySelector('h2').firstChild.textContent.trim())),
  );
  byId('made').textContent =
    `Made by farfault ${data[data.kind]?.version ?? ''} from ${data.file}. This page holds all its data and loads nothing.`;
} catch (error) {
  byId('failure').textContent = `This page could not be shown: ${error.message}`;
  byId('failure').hidden = false;
  throw error;
}
