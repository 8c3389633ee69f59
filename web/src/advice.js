// SPDX-License-Identifier: Apache-2.0
// What `farfault advise` found of the same program, where it was asked for (`farfault report --advice`): each advice with what it gains, and the
// commands that repeat the simulations behind it.
import { digits, time } from './format.js';
import { byId, element } from './page.js';

const code = (text) => element('code', {}, text);
// `names` between backticks, as advice is Markdown too
const withNames = (text) => text.split('`').map((part, i) => (i % 2 ? code(part) : part));

function itemElement(item) {
  const share = Math.max(0, Math.min(100, item.gain_percent));
  const bar = element('span', { class: 'gain-bar', 'aria-hidden': 'true' }, element('i'));
  bar.firstChild.style.width = `${share}%`;
  return element(
    'li',
    { class: 'advice' },
    element('div', { class: 'gain' }, element('strong', {}, `saves ${digits(item.gain_percent)} %`), bar),
    element(
      'div',
      {},
      element('h3', {}, withNames(item.title)),
      element('p', {}, withNames(item.text)),
      element(
        'p',
        { class: 'detail' },
        `${time(item.time_now_ps)} under `,
        code(item.now),
        `, ${time(item.time_then_ps)} under `,
        code(item.then),
        '.',
      ),
      item.commands.length
        ? element(
            'details',
            {},
            element('summary', {}, 'how to see it'),
            element(
              'pre',
              {},
              item.commands.map((command) => `${command}\n`),
            ),
          )
        : null,
    ),
  );
}

/* advice: as docs/advise.md describes its JSON; undefined: there is none, and the section stays hidden. */
export function showAdvice(advice, run) {
  byId('advice').hidden = !advice;
  if (!advice) return;
  const now = advice.advice.filter(({ conditional }) => !conditional);
  const later = advice.advice.filter(({ conditional }) => conditional);
  const machines = new Set(run.runs.map(({ machine }) => machine));
  byId('advice-summary').textContent = advice.summary;
  byId('advice-warnings').replaceChildren(
    ...[
      [run.command && advice.program !== run.command, `The advice is for another command: ${advice.program}.`],
      [machines.size && !machines.has(advice.machine), `The advice is for another machine: ${advice.machine}.`],
      [
        advice.sampling?.estimated || advice.sampling?.blocks,
        'Times, and so gains, are estimated (--sample): only some of the launches that repeat, or of the blocks of long ones, were timed.',
      ],
    ]
      .filter(([applies]) => applies)
      .map(([, text]) => element('p', { class: 'warning' }, text)),
  );
  byId('advice-list').replaceChildren(...now.map(itemElement));
  byId('advice-later').hidden = !later.length;
  byId('advice-later-list').replaceChildren(...later.map(itemElement));
  byId('advice-verdict').textContent = advice.verdict;
  if (!now.length)
    byId('advice-list').replaceChildren(element('li', {}, 'Nothing that was simulated saves this program enough of its time.'));
}
