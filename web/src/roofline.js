// SPDX-License-Identifier: Apache-2.0
// A roofline of the chosen manager's kernels: warp instructions per second over warp instructions per byte, a point per kernel and level of
// memory, below what the machine allows (`peaks` of the run, docs/json.md): a level's line is its bandwidth, the flat one the issue of
// instructions. The nearer a point is to its line, the more that level limits its kernel.
import { axisLook, legend, makeChart, tooltip } from './charts.js';
import { bytes, count, digits, share, time } from './format.js';
import { byId, tip } from './page.js';
import { makeTable } from './table.js';
import { colour } from './theme.js';

const DRAWN = 40; // kernels, those with most time first
const SECTOR = 32;

// The levels, and how many bytes a kernel takes through each.
const LEVELS = [
  { key: 'l1', name: 'L1', shade: 's3', bytes: (k) => SECTOR * (k.sectors ?? 0) },
  { key: 'l2', name: 'L2', shade: 's1', bytes: (k) => SECTOR * ((k.l2_hits ?? 0) + (k.l2_misses ?? 0)) },
  { key: 'dram', name: 'GPU memory', short: 'memory', shade: 's2', bytes: (k) => (k.dram_read_bytes ?? 0) + (k.dram_write_bytes ?? 0) },
  { key: 'link', name: 'link, to GPU', short: 'link', shade: 's5', bytes: (k) => (k.h2d_bytes ?? 0) + (k.remote_bytes ?? 0) },
];

/* What a kernel does per second and per byte: {kernel, speed: 10^9 warp instructions per second, levels: {key: {bytes, intensity, most}}: of those that
 * carried something for it, `most` the speed that this level allows at this intensity; near: {name, share}: what it is nearest to}. */
export function pointOf(kernel, peaks) {
  const speed = (1000 * (kernel.warp_instructions ?? 0)) / kernel.time_ps;
  const point = { kernel, speed, levels: {}, near: { name: 'issue', share: speed / peaks.warp_instructions } };
  for (const { key, name, bytes: bytesOf } of LEVELS) {
    const carried = bytesOf(kernel);
    if (!carried) continue;
    const intensity = kernel.warp_instructions / carried;
    const most = Math.min(peaks.warp_instructions, intensity * peaks[key]);
    point.levels[key] = { bytes: carried, intensity, most };
    const used = (1000 * carried) / kernel.time_ps / peaks[key];
    if (used > point.near.share) point.near = { name, share: used };
  }
  return point;
}

const perByte = (value) => (value >= 0.01 ? digits(value) : value >= 1e-3 ? value.toPrecision(2) : value.toExponential(1));
const perSecond = (value) => `${count(value * 1e9)}/s`;

function columns() {
  return [
    { key: 'name', title: 'kernel', text: true, value: ({ kernel }) => kernel.name },
    { key: 'time_ps', title: 'time', help: 'of all its launches', value: ({ kernel }) => kernel.time_ps, format: time },
    { key: 'near', title: 'nearest limit', help: 'the one that it uses most of', text: true, value: ({ near }) => near.name },
    { key: 'share', title: 'of it', help: 'how much of that limit it uses', value: ({ near }) => near.share, format: share },
    { key: 'speed', title: 'instructions', help: 'of warps, per second', value: ({ speed }) => speed, format: perSecond },
    ...LEVELS.map(({ key, name, short }) => ({
      key,
      title: `per byte, ${short ?? name}`,
      help: `warp instructions per byte that it takes through the level: ${name}`,
      value: ({ levels }) => levels[key]?.intensity ?? null,
      format: perByte,
    })),
  ];
}

// Returns {show(run)}; the section is hidden where the file does not know what the machine does at most.
export function makeRoofline() {
  const [section, holder, notes] = [byId('roofline'), byId('roofline-figure'), byId('roofline-notes')];
  let [made, peaks, points, drawn] = [null, null, [], []];
  const table = makeTable(byId('roofline-table'), columns(), {
    sort: { key: 'time_ps', down: true },
    filter: 'filter: part of a name, of it>50 ...',
    empty: 'No kernel has executed an instruction.',
  });

  function pointTip({ data, seriesName }) {
    if (!data?.point) return tip(seriesName, []);
    const { kernel, speed, levels, near } = data.point;
    const { name, key, shade } = data.level;
    const level = levels[key];
    return tip(
      kernel.name,
      [
        ['level', name, colour(shade)],
        ['through it', bytes(level.bytes)],
        ['warp instructions per byte', perByte(level.intensity)],
        ['warp instructions', perSecond(speed)],
        ['possible here', perSecond(level.most)],
        ['of that', share(speed / level.most)],
      ],
      `Its nearest limit: ${near.name}, ${share(near.share)} of it.`,
    );
  }

  function options() {
    const look = axisLook();
    const all = drawn.flatMap(({ levels }) => Object.values(levels).map(({ intensity }) => intensity));
    const low = 10 ** Math.floor(Math.log10(Math.min(...all, peaks.warp_instructions / peaks.l1) / 2));
    const high = 10 ** Math.ceil(Math.log10(Math.max(...all, peaks.warp_instructions / peaks.link) * 2));
    const slowest = Math.min(...drawn.map(({ speed }) => speed), peaks.warp_instructions / 100);
    const axis = (name, more) => ({
      ...look,
      type: 'log',
      name,
      nameLocation: 'middle',
      splitLine: { show: true, lineStyle: { color: colour('grid') } },
      ...more,
    });
    const line = ({ key, name, shade }) => ({
      type: 'line',
      name,
      silent: true,
      showSymbol: false,
      data: [
        [low, low * peaks[key]],
        [peaks.warp_instructions / peaks[key], peaks.warp_instructions],
      ],
      lineStyle: { width: 1.5, color: colour(shade) },
      itemStyle: { color: colour(shade) },
      z: 2,
    });
    const dots = (level) => ({
      type: 'scatter',
      name: level.name,
      symbolSize: ({ 2: size }) => size,
      itemStyle: { color: colour(level.shade), opacity: 0.75, borderColor: colour('card'), borderWidth: 0.5 },
      data: drawn
        .filter(({ levels }) => levels[level.key])
        .map((point) => ({
          value: [point.levels[level.key].intensity, point.speed, 8 + 16 * Math.sqrt(point.kernel.time_ps / drawn[0].kernel.time_ps)],
          point,
          level,
        })),
      z: 3,
    });
    return {
      tooltip: tooltip({ trigger: 'item', formatter: pointTip }),
      legend: legend({ top: 0, left: 0, data: LEVELS.map(({ name }) => name) }),
      grid: { left: 62, right: 24, top: 40, bottom: 48, outerBoundsMode: 'none' },
      xAxis: axis('warp instructions per byte', { min: low, max: high, nameGap: 28, axisLabel: { ...look.axisLabel, formatter: perByte } }),
      yAxis: axis('10⁹ warp instructions per second', {
        min: 10 ** Math.floor(Math.log10(slowest)),
        max: 10 ** Math.ceil(Math.log10(peaks.warp_instructions * 1.2)),
        nameGap: 42,
        axisLabel: { ...look.axisLabel, formatter: perByte },
      }),
      series: [
        ...LEVELS.map(line),
        {
          type: 'line',
          name: 'issue of instructions',
          silent: true,
          showSymbol: false,
          data: [
            [peaks.warp_instructions / peaks.l1, peaks.warp_instructions],
            [high, peaks.warp_instructions],
          ],
          lineStyle: { width: 1.5, color: colour('text') },
          z: 2,
        },
        ...LEVELS.map(dots),
      ],
    };
  }

  return {
    show(run) {
      ({ peaks = null } = run);
      section.hidden = run.error || !peaks;
      if (section.hidden) return;
      points = (run.kernels ?? [])
        .filter(({ time_ps: ps, warp_instructions: done }) => ps > 0 && done > 0)
        .map((kernel) => pointOf(kernel, peaks))
        .sort((a, b) => b.kernel.time_ps - a.kernel.time_ps);
      drawn = points.slice(0, DRAWN);
      table.show(points);
      holder.hidden = !drawn.length;
      notes.textContent = points.length > drawn.length ? `The ${DRAWN} kernels with most time of ${points.length} are drawn.` : '';
      holder.dataset.marks = String(drawn.reduce((total, { levels }) => total + Object.keys(levels).length, 0));
      if (!drawn.length) return;
      if (made) made.redraw();
      else made = makeChart(holder, options, (width) => (width < 600 ? 340 : 420));
    },
  };
}
