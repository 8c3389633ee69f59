// SPDX-License-Identifier: Apache-2.0
// Time per manager: one bar each, split into what the GPU and the link did. The parts never overlap and add up to the run's time:
// kernels alone, both at once, the link alone, neither.
import { axisLook, legend, makeChart, nameRoom, plainLabel, tooltip } from './charts.js';
import { axisOf, ratio, share, time } from './format.js';
import { tip } from './page.js';
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

function barTip(run, parts) {
  if (run.error) return tip(run.memory, [], `could not run the program: ${run.error}`);
  const rows = PARTS.filter(({ key }) => parts[key] !== undefined)
    .map((part) => [part.name, `${time(parts[part.key])} (${share(parts[part.key] / run.time_ps)})`, colour(part.colour)]);
  return tip(run.memory, [['time', time(run.time_ps)], ['ratio to copy', ratio(run.ratio)], ...rows], 'Click: show this manager in the figures below.');
}

// runs; onChoose(index): a bar was clicked; isChosen(index). Returns {redraw, setShares(on)}: bars as shares of their own time.
export function drawBars(holder, runs, onChoose, isChosen) {
  const parts = runs.map((run) => (run.error || !run.time_ps ? {} : partsOf(run)));
  const used = PARTS.filter(({ key }) => parts.some((part) => part[key] !== undefined));
  let shares = false;
  const largest = Math.max(1, ...runs.map((run, i) => (parts[i].kernel === undefined ? 0 : run.time_ps)));
  const value = (i, key) => (parts[i][key] ?? 0) / (shares ? runs[i].time_ps || 1 : 1);
  const endLabel = ({ dataIndex: i }) => {
    if (runs[i].error) return 'could not run';
    return `${time(runs[i].time_ps)}  ${ratio(runs[i].ratio)}`;
  };
  const options = (width) => {
    const room = nameRoom(runs.map(({ memory }) => memory), width);
    const axis = shares ? { name: '%', format: (v) => String(Math.round(v * 100)) } : axisOf(largest, 'time');
    const look = axisLook();
    return {
      tooltip: tooltip({ trigger: 'axis', axisPointer: { type: 'shadow' }, formatter: (list) => barTip(runs[list[0].dataIndex], parts[list[0].dataIndex]) }),
      legend: legend({ top: 0, left: 0, data: used.map(({ name }) => name) }),
      grid: { left: room, right: width < 600 ? 96 : 120, top: width < 600 ? 72 : 40, bottom: 44, outerBoundsMode: 'none' },
      xAxis: { ...look, type: 'value', max: shares ? 1 : undefined, name: shares ? 'share of the run\'s time (%)' : `time (${axis.name})`, nameLocation: 'middle', nameGap: 28,
        splitNumber: width < 600 ? 3 : 6, axisLabel: { ...look.axisLabel, formatter: axis.format } },
      yAxis: { ...look, type: 'category', inverse: true, data: runs.map(({ memory }) => memory), triggerEvent: true,
        axisLabel: plainLabel({ ...look.axisLabel, fontSize: 13, width: room - 12, overflow: 'truncate',
          color: (name, i) => (isChosen(i) ? colour('accent') : colour('text')) }) },
      series: [
        ...used.map((part) => ({ type: 'bar', stack: 'time', name: part.name, barMaxWidth: 22, itemStyle: { color: colour(part.colour), borderColor: colour('card'), borderWidth: 0.5 },
          data: runs.map((_, i) => value(i, part.key)) })),
        { type: 'bar', stack: 'time', name: 'total', data: runs.map(() => 0), silent: true,
          label: { show: true, position: 'right', color: colour('text'), fontSize: 12, formatter: endLabel } },
      ],
    };
  };
  const made = makeChart(holder, options, (width) => runs.length * 32 + (width < 600 ? 120 : 88));
  holder.dataset.marks = String(used.length * runs.filter((_, i) => parts[i].kernel !== undefined).length);
  made.chart.getZr().on('click', (event) => { // anywhere in a bar's row, its name too
    const [, row] = made.chart.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]) ?? [];
    if (row >= 0 && row < runs.length) onChoose(Math.round(row));
  });
  return {
    redraw: made.redraw,
    setShares(on) {
      shares = on;
      made.redraw();
    },
  };
}
