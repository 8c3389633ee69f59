// SPDX-License-Identifier: Apache-2.0
// Memory stacks: speed, traffic and energy of every simulation as bars, a table with the numbers, and what went over which link under the
// chosen one, as a matrix whose shades are the same for all.
import { legend, makeChart, nameRoom, tooltip } from './charts.js';
import { axisOf, bytes, count, isNumber, ratio, share } from './format.js';
import { byId, element, tip } from './page.js';
import { rowAxes } from './rows.js';
import { makeTable } from './table.js';
import { colour } from './theme.js';

const JOULES = [
  ['pJ', 1e-12],
  ['nJ', 1e-9],
  ['uJ', 1e-6],
  ['mJ', 1e-3],
  ['J', 1],
];
const joulesOf = (largest) => JOULES.reduce((best, unit) => (largest >= 0.9995 * unit[1] ? unit : best), JOULES[0]);
const joules = (value) => {
  if (!isNumber(value)) return '-';
  const [name, size] = joulesOf(value);
  return value ? `${(value / size).toPrecision(3)} ${name}` : '0 J';
};

/** Time of kernels; the copies that a map waits for are copies of the program. */
const workOf = (run) => run.kernel_ps - (run.stacks.stopped_ps || 0);
const isTimed = (run) => run.stacks && !run.error && run.complete !== false && workOf(run) > 0;

// Kernels' speed against the first simulation with stacks; null: there is none.
export function speedOf(runs, run) {
  const first = runs.find(({ stacks, error, time_ps: t }) => stacks && !error && t > 0);
  return first && isTimed(first) && isTimed(run) ? workOf(first) / workOf(run) : null;
}

const MEASURES = {
  speed: {
    name: 'speed of the kernels',
    parts: [['speed', 's1', (run, runs) => speedOf(runs, run)]],
    axis: () => ({ name: 'times the first simulation', format: (v) => String(v) }),
    format: ratio,
  },
  traffic: {
    name: 'traffic off the chip',
    parts: [
      ['from the GPU (TX)', 's1', ({ stacks }) => stacks.tx_total_bytes],
      ['to the GPU (RX)', 's2', ({ stacks }) => stacks.rx_total_bytes],
      ['between stacks', 's3', ({ stacks }) => stacks.cross_total_bytes],
    ],
    axis: (largest) => axisOf(largest, 'bytes'),
    format: bytes,
  },
  energy: {
    name: 'energy',
    parts: [
      ['links that carry', 's1', ({ stacks }) => stacks.link_joule],
      ['idle links', 's2', ({ stacks }) => stacks.idle_joule],
      ['rows opened', 's3', ({ stacks }) => stacks.activation_joule],
      ['bits read and written', 's4', ({ stacks }) => stacks.read_joule],
      ['SMs', 's5', ({ stacks }) => stacks.sm_joule ?? 0],
    ],
    axis: (largest) => {
      const [name, size] = joulesOf(largest);
      return { name, format: (v) => String(+(v / size).toPrecision(7)) };
    },
    format: joules,
  },
};

function drawStackBars(holder, runs, all) {
  let measure = MEASURES.speed;
  const valuesOf = (run) => measure.parts.map(([, , value]) => value(run, all) ?? 0);
  const sumOf = (run) => valuesOf(run).reduce((sum, value) => sum + value, 0);
  const options = (width) => {
    const names = runs.map(({ memory }) => memory);
    const room = nameRoom(names, width, 0.4);
    const axis = measure.axis(Math.max(...runs.map(sumOf), 0));
    return {
      tooltip: tooltip({
        trigger: 'axis',
        axisPointer: { type: 'shadow' },
        formatter: ([{ dataIndex: i }]) =>
          tip(
            runs[i].memory,
            measure.parts.map(([name, shade], k) => [name, measure.format(valuesOf(runs[i])[k]), colour(shade)]),
          ),
      }),
      legend: legend({ top: 0, left: 0, data: measure.parts.map(([name]) => name) }),
      grid: { left: room, right: 110, top: 40, bottom: 44, outerBoundsMode: 'none' },
      ...rowAxes(names, { width, room, title: axis.name, format: axis.format }),
      series: measure.parts.map(([name, shade], k) => ({
        type: 'bar',
        stack: 'all',
        name,
        barMaxWidth: 22,
        itemStyle: { color: colour(shade), borderColor: colour('card'), borderWidth: 0.5 },
        data: runs.map((run) => valuesOf(run)[k]),
        label:
          k + 1 === measure.parts.length
            ? {
                show: true,
                position: 'right',
                color: colour('text'),
                fontSize: 12,
                formatter: ({ dataIndex: i }) => measure.format(sumOf(runs[i])),
              }
            : { show: false },
      })),
    };
  };
  const made = makeChart(holder, options, () => runs.length * 32 + 96);
  return {
    setMeasure(key) {
      measure = MEASURES[key];
      holder.dataset.marks = String(runs.length * measure.parts.length);
      made.redraw();
    },
  };
}

/* ---- the table ---- */

const TEXTS = [
  ['memory', 'simulation', 'the memory manager, and what is chosen behind it', ({ memory }) => memory],
  [
    'map',
    'map',
    'which stack has an address; behind the colon what was found',
    ({ stacks }) => (stacks.found ? `${stacks.map}: ${stacks.found}` : stacks.map),
  ],
];
const NUMBERS = [
  ['instances', "warps' ways through candidate blocks", count],
  ['colocation', 'share of the instances whose accesses all lie in one stack', share],
  ['offloaded', 'instances that ran in a stack', count],
  ['offloaded_share', 'share of the warp instructions that SMs in stacks issued', share],
  ['refused_learning', 'instances kept on the GPU while the map was still being learned', count],
  ['refused_condition', 'instances kept on the GPU: too few trips to save anything', count],
  ['refused_tx', 'kept: the channel to the stack is busy, and the block saves nothing there', count],
  ['refused_rx', 'kept: the channel from the stack is busy, and the block saves nothing there', count],
  ['refused_slow', 'kept: those that went lately took longer', count],
  ['refused_full', "kept: the stack's SMs hold no more warps", count],
  ['off_chip_bytes', 'over all links', bytes],
  ['tx_total_bytes', 'from the GPU to the stacks', bytes],
  ['rx_total_bytes', 'from the stacks to the GPU', bytes],
  ['cross_total_bytes', 'from stack to stack', bytes],
  ['internal_total_bytes', 'on the buses inside the stacks', bytes],
  ['joule', 'energy of links and memory', joules],
];
const TITLES = {
  colocation: 'colocated',
  offloaded_share: 'instructions',
  off_chip_bytes: 'off chip',
  tx_total_bytes: 'TX',
  rx_total_bytes: 'RX',
  cross_total_bytes: 'between',
  internal_total_bytes: 'inside',
  joule: 'energy',
  refused_learning: 'learning',
  refused_condition: 'too few trips',
  refused_tx: 'TX busy',
  refused_rx: 'RX busy',
  refused_slow: 'slow',
  refused_full: 'full',
};

function stackColumns(all) {
  const [name, map] = TEXTS.map(([key, title, help, value]) => ({ key, title, help, text: true, value }));
  const speed = {
    key: 'speed',
    title: 'speed',
    help: 'of the kernels, against the first simulation',
    value: (run) => speedOf(all, run),
    format: ratio,
  };
  const numbers = NUMBERS.map(([key, help, format]) => ({
    key,
    title: TITLES[key] ?? key,
    help,
    value: ({ stacks }) => stacks[key] ?? null,
    format,
  }));
  return [name, speed, ...numbers, map];
}

/* ---- the links ---- */

const endName = (end) => (end ? `stack ${end - 1}` : 'GPU');

// From an end to an end; 0 is the GPU.
function bytesBetween(stacks, from, to) {
  if (!from) return stacks.tx_bytes?.[to - 1] ?? 0;
  return (to ? stacks.cross_bytes?.[from - 1]?.[to - 1] : stacks.rx_bytes?.[from - 1]) ?? 0;
}

const endsOf = ({ count: stacks }) => Array.from({ length: stacks + 1 }, (_, i) => i);
const pairsOf = (stacks) =>
  endsOf(stacks).flatMap((from) => endsOf(stacks).map((to) => (from === to ? 0 : bytesBetween(stacks, from, to))));

function linkCell(value, most) {
  const cell = element('td', { title: `${value} bytes` }, bytes(value));
  const strength = most ? value / most : 0;
  if (value) cell.style.background = `color-mix(in srgb, var(--in) ${Math.round(10 + 60 * strength)}%, transparent)`;
  return cell;
}

// The matrix of one simulation; `most`: what has the strongest shade.
function linkTable({ stacks }, most) {
  const ends = endsOf(stacks);
  return element(
    'table',
    { class: 'data links' },
    element(
      'thead',
      {},
      element(
        'tr',
        {},
        element('th', {}, 'from \\ to'),
        ends.map((to) => element('th', { scope: 'col' }, endName(to))),
      ),
    ),
    element(
      'tbody',
      {},
      ends.map((from) =>
        element(
          'tr',
          {},
          element('th', { scope: 'row' }, endName(from)),
          ends.map((to) => (from === to ? element('td', {}, '') : linkCell(bytesBetween(stacks, from, to), most))),
        ),
      ),
    ),
  );
}

/* ---- the section ---- */

// Fills the section, or hides it. Returns {show(run)}: the simulation whose links are shown.
export function makeStacks(all) {
  const runs = all.filter(({ stacks, error }) => stacks && !error && stacks.count >= 1 && stacks.count <= 16);
  byId('stacks').hidden = !runs.length;
  if (!runs.length) return { show() {} };
  const most = Math.max(...runs.flatMap(({ stacks }) => pairsOf(stacks)));
  const bars = drawStackBars(byId('stack-bars'), runs, all);
  makeTable(byId('stack-table'), stackColumns(all), { rows: runs, filter: runs.length > 8 ? 'filter: controlled, speed>1 ...' : null });
  function choose(key) {
    bars.setMeasure(key);
    byId('stack-choices').replaceChildren(
      ...Object.entries(MEASURES).map(([each, { name }]) =>
        element(
          'button',
          { type: 'button', 'data-measure': each, 'aria-pressed': String(each === key), onclick: () => choose(each) },
          name,
        ),
      ),
    );
  }
  choose('speed');
  return {
    show(run) {
      const shown = runs.includes(run) ? run : runs[0];
      byId('stack-links').replaceChildren(
        element('p', { class: 'detail' }, 'Bytes by link under ', element('code', {}, shown.memory), ' (choose another below):'),
        element('div', { class: 'table-scroll', tabindex: 0 }, linkTable(shown, most)),
      );
    },
  };
}
