// SPDX-License-Identifier: Apache-2.0
// The page of `farfault compare --html`: one run beside those that it is compared with. `comparisons` is what `--json` writes, one object per file
// behind the first; `runs` are the files themselves, in the order given (docs/json.md).
import { legend, makeChart, nameRoom, tooltip } from './charts.js';
import { axisOf, byUnit, count, digits, isNumber, reason, share, time } from './format.js';
import { byId, element, tip } from './page.js';
import { rowAxes } from './rows.js';
import { makeTable } from './table.js';
import { colour } from './theme.js';

const code = (text) => element('code', {}, text);
const PRESENCE = {
  gone: 'only before',
  new: 'only after',
  fails: 'could not run it after',
  works: 'could not run it before',
};
const LEVELS = { all: 'all', run: 'managers', tier: 'tiers', kernel: 'kernels', allocation: 'allocations' };
const SHADES = ['rest', 's1', 's3', 's4', 's5', 's6', 's7', 's8'];

// "+12.3 %", "x 14", as the command line has it.
function changeText({ presence, before, after }) {
  if (presence !== 'both') return PRESENCE[presence];
  if (!isNumber(before) || !isNumber(after)) return '-';
  if (before === 0) return 'from 0';
  const relative = (after - before) / before;
  if (relative >= 9) return `x ${digits(relative + 1)}`;
  return `${relative < 0 ? '-' : '+'}${Math.abs(100 * relative).toFixed(Math.abs(relative) < 0.0005 ? 4 : 1)} %`;
}

const nameOf = ({ name, range }) => (range ? `${name} in ${range}` : (name ?? ''));

function metricFormat({ metric, unit }) {
  if (/_rate$|_utilisation$/.test(metric ?? '')) return share;
  return byUnit(unit);
}

function changeColumns() {
  const number = (key) => ({ key, title: key, value: (change) => change[key] ?? null });
  return [
    { key: 'memory', title: 'memory', text: true, value: ({ memory }) => memory },
    {
      key: 'level',
      title: 'of',
      help: 'the whole run under this manager, a tier below GPU memory, a kernel, or an allocation',
      text: true,
      value: ({ level }) => level,
    },
    { key: 'name', title: 'name', text: true, value: nameOf },
    { key: 'metric', title: 'metric', text: true, value: ({ metric }) => metric ?? '' },
    number('before'),
    number('after'),
    { key: 'change', title: 'change', text: true, value: changeText },
    { key: 'verdict', title: 'verdict', text: true, value: ({ verdict }) => (verdict === 'neither' ? '' : verdict) },
    { key: 'effect', title: 'effect', help: "the difference over the whole run's number", value: ({ effect }) => effect, format: share },
  ];
}

/* ---- time before and after ---- */

// The managers of all runs, in the order in which they first come.
const managersOf = (runs) => [...new Set(runs.flatMap((run) => (run.runs ?? []).map(({ memory }) => memory)))];

function drawTimes(holder, runs, files) {
  const managers = managersOf(runs);
  const found = runs.map((run) => managers.map((memory) => (run.runs ?? []).find((one) => one.memory === memory)));
  const value = (one) => (one && !one.error ? one.time_ps : null);
  const largest = Math.max(1, ...found.flat().map((one) => value(one) ?? 0));
  const rowTip = (row) =>
    tip(
      managers[row],
      files.map((file, i) => {
        const [first, own] = [value(found[0][row]), value(found[i][row])];
        const text = own === null ? (found[i][row]?.error ? reason(found[i][row]) : 'not simulated') : time(own);
        return [
          file,
          i && first && own ? `${text} (${changeText({ presence: 'both', before: first, after: own })})` : text,
          colour(SHADES[i % SHADES.length]),
        ];
      }),
    );
  const options = (width) => {
    const room = nameRoom(managers, width);
    const axis = axisOf(largest, 'time');
    return {
      tooltip: tooltip({ trigger: 'axis', axisPointer: { type: 'shadow' }, formatter: (list) => rowTip(list[0].dataIndex) }),
      legend: legend({ type: 'scroll', top: 0, left: 0, data: files }),
      grid: { left: room, right: 90, top: 40, bottom: 44, outerBoundsMode: 'none' },
      ...rowAxes(managers, { width, room, title: `time (${axis.name})`, format: axis.format }),
      series: files.map((file, i) => ({
        type: 'bar',
        name: file,
        barMaxWidth: 18,
        itemStyle: { color: colour(SHADES[i % SHADES.length]) },
        data: found[i].map((one) => value(one) ?? '-'),
        label: { show: true, position: 'right', color: colour('text'), fontSize: 12, formatter: ({ data }) => time(data) },
      })),
    };
  };
  makeChart(holder, options, () => managers.length * (14 + 18 * files.length) + 88);
  holder.dataset.marks = String(found.flat().filter((one) => value(one) !== null).length);
}

/* ---- the page ---- */

// What a reader would say of one comparison.
function sentence(comparison) {
  const { changes, compared, worse, better, threshold, after } = comparison;
  const limit = threshold > 0 ? ` of more than ${digits(100 * threshold)} %` : '';
  if (!changes.length) return element('li', {}, code(after), `: no change${limit} in ${count(compared)} numbers.`);
  const [first] = changes;
  return element(
    'li',
    {},
    code(after),
    `: ${count(changes.length)} ${changes.length === 1 ? 'change' : 'changes'}${limit} in ${count(compared)} numbers, `,
    element('strong', {}, `${count(worse)} worse`),
    `, ${count(better)} better. Most effect: `,
    code([first.memory, nameOf(first), first.metric].filter(Boolean).join(' ')),
    ` (${changeText(first)}).`,
  );
}

// What makes the numbers hard to compare.
function differences(runs, files) {
  const found = [];
  const machine = (run) => run.runs?.[0]?.machine ?? 'none';
  for (let i = 1; i < runs.length; i++) {
    for (const [what, of] of [
      ['The programs differ', ({ command }) => command ?? 'unknown'],
      ['The machines differ', machine],
      ['The versions of farfault differ', ({ version }) => version ?? 'unknown'],
    ])
      if (of(runs[0]) !== of(runs[i])) found.push(`${what}: ${of(runs[0])} in ${files[0]}, ${of(runs[i])} in ${files[i]}.`);
  }
  runs.forEach((run, i) => run.complete === false && found.push(`The run ${files[i]} is incomplete: the program did not end by itself.`));
  return found.map((text) => element('p', { class: 'warning' }, text));
}

export function showComparison(data) {
  const { comparisons, runs } = data.comparison;
  const files = [comparisons[0].before, ...comparisons.map(({ after }) => after)];
  byId('kind').textContent = 'comparison';
  byId('title').textContent = files.join(' → ');
  document.title = `${files.join(' - ')} - farfault`;
  byId('subtitle').textContent = runs[0].command ?? '';
  byId('compare-verdict').replaceChildren(...comparisons.map(sentence));
  byId('compare-warnings').replaceChildren(...differences(runs, files));
  byId('compare-page').hidden = false;
  drawTimes(byId('compare-times'), runs, files);

  let [chosen, level] = [0, 'all'];
  const table = makeTable(byId('compare-table'), changeColumns(), {
    filter: 'filter: uvm, faults, worse, effect>0.1 ...',
    empty: 'Nothing changed.',
    cell: (change, value) => metricFormat(change)(value),
    toneOf: ({ verdict }) => (verdict === 'neither' ? null : verdict),
  });
  const button = (key, name, pressed, act) =>
    element('button', { type: 'button', 'data-choice': key, 'aria-pressed': String(pressed), onclick: act }, name);
  function show() {
    const { changes } = comparisons[chosen];
    const there = Object.keys(LEVELS).filter((key) => key === 'all' || changes.some((change) => change.level === key));
    if (!there.includes(level)) level = 'all';
    byId('compare-files').replaceChildren(
      ...(comparisons.length > 1
        ? comparisons.map(({ after }, i) => button(`file-${i}`, after, i === chosen, () => ((chosen = i), show())))
        : []),
    );
    byId('compare-levels').replaceChildren(...there.map((key) => button(key, LEVELS[key], key === level, () => ((level = key), show()))));
    table.show(changes.filter((change) => level === 'all' || change.level === level));
  }
  show();
}
