// SPDX-License-Identifier: Apache-2.0
// Time per manager: one bar each, split into what the GPU and the link did. The parts never overlap and add up to the run's time:
// kernels alone, both at once, the link alone, neither.
import { legend, makeChart, nameRoom, tooltip } from './charts.js';
import { axisOf, baseline, ratio, reason, share, time } from './format.js';
import { tip } from './page.js';
import { rowAxes } from './rows.js';
import { colour } from './theme.js';

const PARTS = [
  { key: 'kernel', name: 'kernels only', colour: 'kernel' },
  { key: 'both', name: 'kernels while data moves', colour: 'both' },
  { key: 'link', name: 'data moves, no kernel', colour: 'in' },
  { key: 'rest', name: 'neither', colour: 'rest' },
];

// The parts of a run in picoseconds; files of versions that did not count `overlap_ps` tell only kernels and the rest.
function partsOf(run) {
  const both = run.overlap_ps;
  if (both === undefined) return { kernel: run.kernel_ps, rest: Math.max(0, run.time_ps - run.kernel_ps) };
  const kernel = Math.max(0, run.kernel_ps - both);
  const link = Math.max(0, run.transfer_ps - both);
  return { kernel, both, link, rest: Math.max(0, run.time_ps - kernel - both - link) };
}

function barTip(runs, run, parts) {
  if (run.error) return tip(run.memory, [], `could not run the program: ${reason(run)}`);
  const rows = PARTS.filter(({ key }) => parts[key] !== undefined).map((part) => [
    part.name,
    `${time(parts[part.key])} (${share(parts[part.key] / run.time_ps)})`,
    colour(part.colour),
  ]);
  return tip(
    run.memory,
    [['time', time(run.time_ps)], [`ratio to ${baseline(runs, run)?.memory ?? 'copy'}`, ratio(run.ratio)], ...rows],
    'Click: show this manager in the figures below.',
  );
}

// Where a close-up of the shorter bars ends, if longer ones dwarf them: a bit above the longest of the shorter half. Infinity: they do not.
function closeUp(runs) {
  const times = runs
    .filter((run) => !run.error && run.time_ps)
    .map((run) => run.time_ps)
    .sort((a, b) => a - b);
  const end = 1.5 * (times[Math.floor(times.length / 2)] ?? 0);
  return times[times.length - 1] > 3 * end ? end : Infinity;
}

export const SCALES = { time: 'time', close: 'time, close-up of the shorter ones', share: 'share of its own time' };

// runs; onChoose(index): a bar was clicked; isChosen(index). Returns {redraw, scales: the keys of SCALES that are of use, setScale(key)}.
export function drawBars(holder, runs, onChoose, isChosen) {
  const parts = runs.map((run) => (run.error || !run.time_ps ? {} : partsOf(run)));
  const used = PARTS.filter(({ key }) => parts.some((part) => part[key] !== undefined));
  const close = closeUp(runs);
  let scale = 'time';
  const largest = Math.max(1, ...runs.map((run, i) => (parts[i].kernel === undefined ? 0 : run.time_ps)));
  const valuesOf = (i) => {
    // what is beyond a close-up's end is cut off
    let left = scale === 'close' ? close : Infinity;
    return Object.fromEntries(
      used.map(({ key }) => {
        const shown = Math.min(left, parts[i][key] ?? 0);
        left -= shown;
        return [key, shown / (scale === 'share' ? runs[i].time_ps || 1 : 1)];
      }),
    );
  };
  const endLabel = ({ dataIndex: i }) => {
    if (runs[i].error) return 'could not run';
    return `${scale === 'close' && runs[i].time_ps > close ? '▸ ' : ''}${time(runs[i].time_ps)}  ${ratio(runs[i].ratio)}`;
  };
  const options = (width) => {
    const names = runs.map(({ memory }) => memory);
    const room = nameRoom(names, width);
    const shares = scale === 'share';
    const values = runs.map((_, i) => valuesOf(i));
    const axis = shares
      ? { name: '%', format: (v) => String(Math.round(v * 100)) }
      : axisOf(Math.min(largest, scale === 'close' ? close : Infinity), 'time');
    return {
      tooltip: tooltip({
        trigger: 'axis',
        axisPointer: { type: 'shadow' },
        formatter: (list) => barTip(runs, runs[list[0].dataIndex], parts[list[0].dataIndex]),
      }),
      legend: legend({ top: 0, left: 0, data: used.map(({ name }) => name) }),
      grid: { left: room, right: width < 600 ? 112 : 130, top: width < 600 ? 72 : 40, bottom: 44, outerBoundsMode: 'none' },
      ...rowAxes(
        names,
        { width, room, title: shares ? "share of the run's time (%)" : `time (${axis.name})`, format: axis.format },
        {
          max: shares ? 1 : scale === 'close' ? close : undefined,
          names: { triggerEvent: true },
          nameColour: (name, i) => (isChosen(i) ? colour('accent') : colour('text')),
        },
      ),
      series: [
        ...used.map((part) => ({
          type: 'bar',
          stack: 'time',
          name: part.name,
          barMaxWidth: 22,
          itemStyle: { color: colour(part.colour), borderColor: colour('card'), borderWidth: 0.5 },
          data: values.map((value) => value[part.key]),
        })),
        {
          type: 'bar',
          stack: 'time',
          name: 'total',
          data: runs.map(() => 0),
          silent: true,
          label: { show: true, position: 'right', color: colour('text'), fontSize: 12, formatter: endLabel },
        },
      ],
    };
  };
  const made = makeChart(holder, options, (width) => runs.length * 32 + (width < 600 ? 120 : 88));
  holder.dataset.marks = String(used.length * runs.filter((_, i) => parts[i].kernel !== undefined).length);
  made.chart.getZr().on('click', (event) => {
    // anywhere in a bar's row, its name too
    const [, row] = made.chart.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]) ?? [];
    if (row >= 0 && row < runs.length) onChoose(Math.round(row));
  });
  return {
    redraw: made.redraw,
    scales: Object.keys(SCALES).filter((key) => key !== 'close' || close < Infinity),
    setScale(key) {
      scale = key;
      made.redraw();
    },
  };
}
