// SPDX-License-Identifier: Apache-2.0
// The page of a sweep: what was studied, a chart of any number over any parameter, and the table of all points.
import { byId, element } from './page.js';
import { describe, isDone, valuesOf, valueText } from './points.js';
import { makeSweepChart } from './sweepchart.js';
import { makeTable } from './table.js';

const code = (text) => element('code', {}, text);
const SHOWN_MEASURES = [
  'ratio',
  'time_us',
  'faults',
  'refaults',
  'h2d_bytes',
  'd2h_bytes',
  'evicted_bytes',
  'link_utilisation',
  'tlb_miss_rate',
];

const many = (number, one, more) => `${number} ${number === 1 ? one : more}`;

function showSummary(points, dimensions, total) {
  const refused = points.filter(({ state }) => state === 'refused').length;
  const failed = points.filter((point) => !isDone(point)).length - refused;
  byId('sweep-summary').replaceChildren(
    ...dimensions
      .map(({ name, values }) => [
        element('dt', {}, name),
        element(
          'dd',
          {},
          values.slice(0, 24).flatMap((value, i) => [i ? ', ' : '', code(valueText(value))]),
          values.length > 24 ? ` and ${values.length - 24} more` : '',
        ),
      ])
      .flat(),
  );
  const warnings = [];
  if (total > points.length)
    warnings.push(
      `The database has ${total} points; this page holds the first ${points.length}. \`farfault results\` with --where and --csv gives the others.`,
    );
  if (refused)
    warnings.push(
      `${many(refused, 'point was', 'points were')} refused: the manager cannot run the program there (the column error of the table says why).`,
    );
  if (failed)
    warnings.push(
      `${many(failed, 'point', 'points')} failed (the column error of the table says why); the next sweep into this file tries again.`,
    );
  byId('sweep-warnings').replaceChildren(...warnings.map((text) => element('p', { class: 'warning' }, text)));
}

// A labelled <select>; choices: [[value, text]].
function selectOf(label, choices, chosen, onChange) {
  const select = element(
    'select',
    { 'data-choice': label },
    choices.map(([value, text]) => element('option', { value, selected: value === chosen }, text)),
  );
  select.addEventListener('change', () => onChange(select.value));
  return element('label', { class: 'control' }, `${label} `, select);
}

// The dimension with the most values.
const most = (dimensions) => dimensions.reduce((best, one) => (best && best.values.length >= one.values.length ? best : one), undefined);

// How many times the largest of these numbers is the smallest; of those above 0.
function spread(values) {
  const some = values.filter((value) => value > 0);
  return some.length ? some.reduce((a, b) => Math.max(a, b)) / some.reduce((a, b) => Math.min(a, b)) : 1;
}

function showChart(points, dimensions, measures) {
  const varying = dimensions.filter(({ values }) => values.length > 1);
  const across = varying.length ? varying : dimensions;
  const state = {
    y: measures.find(({ key }) => key === 'ratio')?.key ?? measures[0].key,
    x: (most(across.filter(({ parameter }) => parameter)) ?? most(across.filter(({ key }) => key !== 'memory')) ?? across[0]).key,
    by: 'memory',
    kept: new Map(), // dimension -> the one value (as text) whose points are shown
  };
  state.logarithmic = spread(points.filter(isDone).map((point) => point[state.y])) > 30;
  if (state.x === state.by)
    state.by = (across.find(({ key }) => key !== state.x) ?? dimensions.find(({ key }) => key !== state.x))?.key ?? state.x;
  // A line through means over machines says little, and nothing where one of them refuses some points.
  const machine = varying.find(({ key }) => key === 'machine' && key !== state.x && key !== state.by);
  if (machine) state.kept.set(machine.key, valueText(machine.values[0]));
  // Whether the parameter means anything to the point's manager: where it does not, the point is there for comparison whatever is chosen.
  const used = new Set(
    points.flatMap((point) => dimensions.filter(({ key }) => point[key] !== null).map(({ key }) => `${key} ${point.memory}`)),
  );
  const applies = (point, key) => used.has(`${key} ${point.memory}`);
  const controls = byId('sweep-controls');
  const chart = makeSweepChart(byId('sweep-chart'), () => ({
    ...state,
    measure: measures.find(({ key }) => key === state.y),
    names: valuesOf(points, state.by),
    others: dimensions.map(({ key }) => key).filter((key) => key !== state.x && key !== state.by),
    points: points.filter(
      (point) => isDone(point) && [...state.kept].every(([key, value]) => valueText(point[key]) === value || !applies(point, key)),
    ),
    describePoint: (point) => dimensions.map(({ key }) => [key, valueText(point[key])]),
  }));

  function change(key) {
    return (value) => {
      state[key] = value;
      if (key === 'x' && state.by === value) state.by = across.find((dimension) => dimension.key !== value)?.key ?? state.by;
      state.kept.delete(state.x);
      state.kept.delete(state.by);
      draw();
    };
  }

  function draw() {
    const names = across.map(({ key }) => [key, key]);
    const rest = varying.filter(({ key }) => key !== state.x && key !== state.by);
    const log = element('input', { type: 'checkbox', checked: state.logarithmic });
    log.addEventListener('change', () => change('logarithmic')(log.checked));
    controls.replaceChildren(
      selectOf(
        'show',
        measures.map(({ key }) => [key, key]),
        state.y,
        change('y'),
      ),
      selectOf('over', names, state.x, change('x')),
      selectOf(
        'a line per',
        dimensions.map(({ key }) => [key, key]),
        state.by,
        change('by'),
      ),
      ...rest.map(({ key, values }) =>
        selectOf(
          `only ${key}`,
          [['', 'all'], ...values.map((value) => [valueText(value), valueText(value)])],
          state.kept.get(key) ?? '',
          (value) => {
            if (value) state.kept.set(key, value);
            else state.kept.delete(key);
            draw();
          },
        ),
      ),
      element('label', { class: 'control' }, log, ' logarithmic'),
    );
    const { shared, levels, gaps } = chart.redraw();
    byId('sweep-notes').textContent = [
      `${state.y}: ${measures.find(({ key }) => key === state.y).help}`,
      shared ? 'Several points share a place: the line goes through their geometric mean, each dot is a point.' : 'Each dot is a point.',
      gaps.length ? `No line through ${gaps.slice(0, 6).join(', ')}${gaps.length > 6 ? ', ...' : ''}: some of the points that it has elsewhere are missing.` : '',
      levels.length ? `Dashed: ${levels.join(', ')}, for which ${state.x} was not given or means nothing.` : '',
    ]
      .filter(Boolean)
      .map((text) => text.replace(/\.?$/, '.'))
      .join(' ');
  }
  draw();
}

function showTable(points, dimensions, measures) {
  const text = (key, title) => ({ key, title: title ?? key, text: true, value: (row) => row[key] });
  const columns = [
    { key: 'point', title: 'point', help: 'its number in the study', value: (row) => row.point },
    ...dimensions.map(({ key, values }) => ({
      ...text(key),
      text: !values.every((value) => typeof value === 'number'),
      hidden: values.length < 2 && key !== 'memory',
    })),
    { ...text('state'), hidden: points.every(isDone) },
    { ...text('error'), hidden: points.every(({ error }) => !error) },
    ...measures.map(({ key, help, format }) => ({
      key,
      title: key,
      help,
      format,
      hidden: !SHOWN_MEASURES.includes(key),
      value: (row) => (isDone(row) ? row[key] : null),
    })),
  ];
  makeTable(byId('sweep-table'), columns, {
    rows: points,
    filter: 'filter: uvm, ratio<1.2, state=failed ...',
    empty: 'There are no points.',
  });
}

export function showResults(data) {
  const { points, total } = data.results;
  byId('kind').textContent = 'results of a sweep';
  byId('title').textContent = data.file;
  document.title = `${data.file} - farfault`;
  byId('results-page').hidden = false;
  const traces = valuesOf(points, 'trace').length;
  const machines = valuesOf(points, 'machine').length;
  byId('subtitle').textContent =
    `${many(points.length, 'point', 'points')}: ${many(traces, 'recorded program', 'recorded programs')} on ${many(machines, 'machine', 'machines')}, simulated under ${many(valuesOf(points, 'memory').length, 'memory manager', 'memory managers')}`;
  const { dimensions, measures } = describe(points, data.counters);
  showSummary(points, dimensions, total);
  byId('sweep-figure').hidden = !measures.length || !dimensions.length;
  if (!byId('sweep-figure').hidden) showChart(points, dimensions, measures);
  showTable(points, dimensions, measures);
}
