// SPDX-License-Identifier: Apache-2.0
// A run over time: above, lanes with a mark for each kernel, copy, batch and transfer; below, curves of the bins of its history
// (docs/json.md): far-faults, evictions, how busy the link was, how much was in GPU memory. All share one axis of time.
import { axisLook, cutMiddle, legend, makeChart, tooltip } from './charts.js';
import { axisOf, bytes, count, ratio, share, time } from './format.js';
import { element, placeBeside, tip } from './page.js';
import { addSpan, itemAt, makeSpans, rectangles } from './spans.js';
import { colour } from './theme.js';
import { followZoom, zoomOptions } from './zoom.js';

const LANE = 24;
const CURVE = 62;
const GAP = 36;
const TOP = 40;
const MOST_OTHERS = 8; // managers in a tip

// Why something was on the link, in the words of the page.
const CAUSES = {
  copy: ["the program's copy", 'host'],
  fault: ['far-fault', 'fault'],
  prefetch: ['prefetch', 'both'],
  declared: ['declared by a launch', 'declared'],
  'write-back': ['eviction (write-back)', 'evict'],
  touch: ['the CPU touched it', 'out'],
  hint: ['asked for by the program', 'in'],
  managed: ['managed memory, for a launch', 'in'],
  remote: ['copy without moving the page', 'rest'],
};
const causeOf = (cause) => CAUSES[cause] ?? [cause, 'rest'];

// Where the plots begin and how much is free behind them; the map of pages below uses the same.
export const margins = (width) => ({ left: width < 600 ? 104 : 150, right: width < 600 ? 12 : 24 });

/* ---- lanes ---- */

const span = (list, i) => [
  ['from', time(list.begin_ps[i])],
  ['for', time(list.end_ps[i] - list.begin_ps[i])],
];

// How long each listed launch of a run took, by its number.
const durations = new WeakMap();
function durationsOf(run) {
  const list = run.history?.kernels;
  if (!durations.has(run))
    durations.set(run, new Map((list?.launch ?? []).map((launch, i) => [launch, list.end_ps[i] - list.begin_ps[i]])));
  return durations.get(run);
}

// The same launch under the other managers on the same device, with how many times as long it took here.
function elsewhere(run, runs, launch) {
  const own = durationsOf(run).get(launch);
  return runs
    .filter((other) => other !== run && other.device === run.device && durationsOf(other).get(launch) > 0)
    .slice(0, MOST_OTHERS)
    .map((other) => {
      const took = durationsOf(other).get(launch);
      return [`under ${other.memory}`, `${time(took)} (${ratio(own / took)})`];
    });
}

function kernelGroup(run, runs, isOf) {
  const { kernels } = run.history;
  const kernelOf = (i) => run.kernels?.[kernels.kernel[i]];
  const name = (i) => kernelOf(i)?.name ?? `kernel ${kernels.kernel[i]}`;
  return {
    legend: 'kernel',
    colour: 'kernel',
    spans: makeSpans(kernels, isOf),
    label: name,
    kernel: true,
    tip: (i) =>
      tip(
        name(i),
        [
          ['launch', String(kernels.launch[i] + 1)],
          ...(kernelOf(i)?.range ? [['range', kernelOf(i).range]] : []),
          ...(kernelOf(i)?.site ? [['launched at', kernelOf(i).site]] : []),
          ['stream', String(kernels.stream[i])],
          ...span(kernels, i),
          ['thread blocks', count(kernels.blocks[i])],
          ...elsewhere(run, runs, kernels.launch[i]),
        ],
        'Click: look at it alone.',
      ),
  };
}

// What moved in one direction: a group per cause, and what is not listed.
function transferGroups(run, direction) {
  const { transfers } = run.history;
  const causes = [...new Set(transfers.cause)];
  const groups = causes.map((cause) => ({
    legend: causeOf(cause)[0],
    colour: causeOf(cause)[1],
    spans: makeSpans(transfers, (i) => transfers.direction[i] === direction && transfers.cause[i] === cause),
    tip: (i) =>
      tip(`${direction === 'h2d' ? 'to the GPU' : 'to the CPU'}: ${causeOf(cause)[0]}`, [
        ['bytes', bytes(transfers.bytes[i])],
        ['pieces', count(transfers.pieces[i])],
        ...span(transfers, i),
      ]),
  }));
  const end = Math.max(0, ...groups.map(({ spans }) => spans.latest[spans.latest.length - 1] ?? 0));
  if (!transfers.left_out || !end) return groups;
  const rest = makeSpans(null);
  addSpan(rest, end, run.time_ps, 0);
  groups.push({
    legend: 'not listed',
    colour: 'rest',
    spans: rest,
    label: () => 'too many to list: see the curves',
    outline: true,
    ink: 'text',
    tip: () =>
      tip(
        'not listed',
        [
          ['from', time(end)],
          ['transfers, both ways', count(transfers.left_out)],
        ],
        'The curves below count them.',
      ),
  });
  return groups;
}

// {name, groups: [{legend, colour, spans, label(item), tip(item)}]} of each lane that has any.
function lanesOf(run, runs) {
  const { kernels, copies, batches, transfers } = run.history;
  const streams = [...new Set(kernels?.stream ?? [])].sort((a, b) => a - b);
  const each = streams.length > 1 && streams.length <= 8;
  const lanes = (each ? streams : streams.slice(0, 1)).map((stream) => ({
    name: each ? `kernels, stream ${stream}` : 'kernels',
    groups: [kernelGroup(run, runs, each ? (i) => kernels.stream[i] === stream : null)],
  }));
  lanes.push({
    name: "program's copies",
    groups: [
      {
        legend: "the program's copy",
        colour: 'host',
        spans: makeSpans(copies),
        tip: (i) =>
          tip(
            `the program asks: ${copies.kind[i]}`,
            [['bytes', bytes(copies.bytes[i])], ...span(copies, i), ['stream', String(copies.stream[i])]],
            'From its turn in its stream to its end; what the link carried for it is below.',
          ),
      },
    ],
  });
  lanes.push({
    name: 'fault batches',
    groups: [
      {
        legend: 'batch',
        colour: 'fault',
        outline: true,
        spans: makeSpans(batches),
        tip: (i) =>
          tip('a batch of far-faults is served', [
            ['far-faults', count(batches.faults[i])],
            ['moved in', bytes(batches.bytes[i])],
            ...span(batches, i),
          ]),
      },
    ],
  });
  if (transfers)
    lanes.push({ name: 'moved to GPU', groups: transferGroups(run, 'h2d') }, { name: 'moved to CPU', groups: transferGroups(run, 'd2h') });
  for (const lane of lanes) lane.groups = lane.groups.filter(({ spans }) => spans.begin.length);
  return lanes.filter(({ groups }) => groups.length);
}

// The marks of a group that are in sight, as one path, with the names of those that have room for one.
function groupShape(group, zoom, params, api) {
  const [, middle] = api.coord([zoom.start, group.lane]);
  const plot = params.coordSys;
  const [y, high] = [middle - LANE * 0.36, LANE * 0.72];
  const list = rectangles(group.spans, zoom.start, zoom.end, plot.x, plot.width / (zoom.end - zoom.start));
  const fill = colour(group.colour);
  const named = group.label ? list.filter(([, width, item]) => width > 44 && item >= 0) : [];
  return {
    type: 'group',
    children: [
      {
        type: 'strips',
        shape: { rectangles: list, y, height: high },
        style: group.outline ? { fill, fillOpacity: 0.35, stroke: fill, lineWidth: 1 } : { fill },
      },
      ...named.map(([x, width, item]) => ({
        type: 'text',
        style: {
          x: x + width / 2,
          y: middle,
          text: group.label(item),
          align: 'center',
          verticalAlign: 'middle',
          fill: colour(group.ink ?? 'on-kernel'),
          fontSize: 12,
          width: width - 10,
          overflow: 'truncate',
          ellipsis: '…',
        },
      })),
    ],
  };
}

// One series per entry of the legend, so that it can be switched off.
function laneSeries(lanes, zoom) {
  const byLegend = new Map();
  lanes.forEach((lane, row) =>
    lane.groups.forEach((group) => {
      group.lane = row;
      if (!byLegend.has(group.legend)) byLegend.set(group.legend, []);
      byLegend.get(group.legend).push(group);
    }),
  );
  return [...byLegend].map(([name, groups]) => ({
    type: 'custom',
    id: name,
    name,
    xAxisIndex: 0,
    yAxisIndex: 0,
    clip: true,
    silent: true,
    itemStyle: { color: colour(groups[0].colour) },
    encode: { x: -1, y: -1 },
    data: groups.map((group) => [0, group.lane]),
    renderItem: (params, api) => groupShape(groups[params.dataIndex], zoom, params, api),
  }));
}

/* ---- curves ---- */

const sum = (list) => list.reduce((total, value) => total + value, 0);

// {title, kind, curves: [{name, shade, list}], end: of its axis} of each plot that has something to show.
function curvesOf(run) {
  const { series, bin_ps: bin, bins } = run.history;
  const of = (name) => series[name] ?? null;
  const values = (name, change) => (of(name) ? series[name].map(change ?? ((value) => value)) : null);
  const per = `per ${time(bin)}`;
  const first = of('faults') && series.faults.map((value, i) => value - (of('refaults')?.[i] ?? 0));
  const plots = [
    {
      title: `Far-faults ${per}`,
      kind: 'count',
      stack: true,
      curves: [
        ['on a page for the first time', 'fault', first],
        ['on a page that was evicted (refaults)', 'evict', values('refaults')],
      ],
    },
    {
      title: `Evicted ${per}`,
      kind: 'bytes',
      curves: [
        ['evicted', 'evict', values('evicted_bytes')],
        ['of these copied back', 'out', values('written_back_bytes')],
      ],
    },
    {
      title: 'Link used',
      kind: 'share',
      curves: [
        ['to GPU', 'in', values('h2d_busy_ps', (v) => v / bin)],
        ['to CPU', 'out', values('d2h_busy_ps', (v) => v / bin)],
      ],
    },
    { title: 'In GPU memory', kind: 'bytes', curves: [['in GPU memory', 'kernel', values('resident_bytes')]] },
    { title: 'Thread blocks that run', kind: 'count', curves: [['thread blocks', 'both', values('block_ps', (v) => v / bin)]] },
  ];
  for (const plot of plots)
    plot.curves = plot.curves
      .filter(([, , list]) => list && sum(list) > 0)
      .map(([name, shade, list]) => ({ name, shade, list: list.slice(0, bins) }));
  for (const plot of plots) plot.end = axisEnd(plot.kind, mostOf(plot));
  return plots.filter(({ curves }) => curves.length);
}

const formats = { count, bytes, share };
const axisFormats = { count, bytes: (value) => bytes(value).replace(/\.0+ /, ' '), share: (value) => `${Math.round(value * 100)} %` };

// The end of an axis from 0: at least `most`, and half of it is a round number too (of bytes: in powers of two).
function axisEnd(kind, most) {
  if (kind === 'share' || !(most > 0)) return 1;
  const base = kind === 'bytes' ? 2 : 10;
  const power = base ** Math.floor(Math.log(most) / Math.log(base));
  const steps = kind === 'bytes' ? [1, 1.25, 1.5, 1.75, 2] : [1, 2, 4, 6, 8, 10];
  const end = power * steps.find((step) => step * power >= most * 0.999);
  return kind === 'count' ? Math.max(2, end) : end;
}

// The highest point of a plot's curves, which may stand upon each other.
function mostOf({ curves, stack }) {
  if (!stack) return Math.max(0, ...curves.map(({ list }) => Math.max(...list)));
  return Math.max(0, ...(curves[0]?.list ?? []).map((_, i) => curves.reduce((total, { list }) => total + list[i], 0)));
}

function curveTip(run, plots, at) {
  const { bin_ps: bin, bins } = run.history;
  const i = Math.min(bins - 1, Math.max(0, Math.floor(at / bin)));
  const rows = plots.flatMap(({ kind, curves, title }) =>
    curves.map(({ name, shade, list }) => [
      curves.length > 1 && kind === 'share'
        ? `${title.toLowerCase()}, ${name}`
        : kind === 'count' && name.startsWith('on a')
          ? `far-faults ${name}`
          : name,
      formats[kind](list[i]),
      colour(shade),
    ]),
  );
  return tip(`${time(i * bin)} to ${time((i + 1) * bin)}`, rows);
}

// A staircase: each bin's value holds until the next bin.
function curveSeries(curve, plot, axis, run) {
  const { bin_ps: bin } = run.history;
  const data = curve.list.map((value, i) => [i * bin, value]);
  data.push([Math.max(run.time_ps, data.length * bin), curve.list[curve.list.length - 1]]);
  return {
    type: 'line',
    name: curve.name,
    xAxisIndex: axis,
    yAxisIndex: axis,
    step: 'end',
    showSymbol: false,
    stack: plot.stack ? plot.title : undefined,
    data,
    lineStyle: { width: 1.2, color: colour(curve.shade) },
    itemStyle: { color: colour(curve.shade) },
    areaStyle: { color: colour(curve.shade), opacity: plot.stack ? 0.75 : 0.28 },
    emphasis: { disabled: true },
  };
}

/* ---- the figure ---- */

const plotTitle = (plot) => {
  if (plot.curves.length === 1) return plot.title;
  return `${plot.title}: ${plot.curves.map(({ name, shade }) => `{${shade}|■} ${name}`).join('   ')}`;
};

function figureOptions(run, lanes, plots, zoom, width) {
  const { left, right } = margins(width);
  const look = axisLook();
  const axis = axisOf(zoom.whole, 'time');
  const lanesHeight = lanes.length * LANE;
  const tops = plots.map((_, i) => TOP + lanesHeight + GAP + i * (CURVE + GAP));
  const names = laneSeries(lanes, zoom);
  const grids = [
    { left, right, top: TOP, height: lanesHeight, outerBoundsMode: 'none', tooltip: { show: false } },
    ...tops.map((top) => ({ left, right, top, height: CURVE, outerBoundsMode: 'none', tooltip: { trigger: 'axis' } })),
  ];
  const last = grids.length - 1;
  const pens = Object.fromEntries(
    ['fault', 'evict', 'in', 'out', 'kernel', 'both'].map((name) => [name, { color: colour(name), fontSize: 14 }]),
  );
  return {
    tooltip: tooltip({ trigger: 'item', formatter: (list) => curveTip(run, plots, (Array.isArray(list) ? list[0] : list).axisValue) }),
    axisPointer: { link: [{ xAxisIndex: plots.map((_, i) => i + 1) }], lineStyle: { color: colour('faint-text') } },
    legend: legend({
      type: 'scroll',
      top: 0,
      left: 0,
      right: 0,
      data: names.map(({ name }) => name),
      pageIconColor: colour('accent'),
      pageTextStyle: { color: colour('text') },
    }),
    title: plots.map((plot, i) => ({
      text: plotTitle(plot),
      left: left - 5,
      top: tops[i] - 25,
      textStyle: { fontSize: 12.5, fontWeight: 600, color: colour('text'), rich: pens, width: width - left - right, overflow: 'truncate' },
    })),
    grid: grids,
    xAxis: grids.map((_, i) => ({
      ...look,
      type: 'value',
      gridIndex: i,
      min: 0,
      max: zoom.whole,
      splitNumber: width < 600 ? 3 : 8,
      splitLine: { show: i === 0, lineStyle: { color: colour('grid') } },
      axisLabel: {
        ...look.axisLabel,
        show: i === last,
        showMinLabel: false,
        showMaxLabel: false,
        hideOverlap: true,
        formatter: axis.format,
      },
      axisTick: { show: i === last },
      name: i === last ? `time (${axis.name})` : '',
      nameLocation: 'middle',
      nameGap: 26,
    })),
    yAxis: grids.map((_, i) =>
      i === 0
        ? {
            ...look,
            type: 'category',
            gridIndex: 0,
            inverse: true,
            data: lanes.map(({ name }) => name),
            axisTick: { show: false },
            splitLine: { show: true, lineStyle: { color: colour('grid') } },
            axisLabel: { ...look.axisLabel, formatter: (name) => cutMiddle(name, left - 14) },
          }
        : {
            ...look,
            type: 'value',
            gridIndex: i,
            min: 0,
            max: plots[i - 1].end,
            interval: plots[i - 1].end / 2,
            axisLabel: { ...look.axisLabel, formatter: axisFormats[plots[i - 1].kind] },
          },
    ),
    dataZoom: zoomOptions(
      zoom,
      grids.map((_, i) => i),
      { left, right },
    ),
    series: [...names, ...plots.flatMap((plot, i) => plot.curves.map((curve) => curveSeries(curve, plot, i + 1, run)))],
  };
}

// What is not drawn mark by mark.
function leftOut(history) {
  return ['kernels', 'copies', 'batches', 'transfers']
    .filter((name) => history[name]?.left_out)
    .map(
      (name) =>
        `${count(history[name].left_out)} ${name} after the first ${count(history[name].count)} have no mark of their own; the curves count them.`,
    )
    .join(' ');
}

// Returns {show(run)}: draws a run that has a history; zoom as zoom.js makes it; notes: an element for what has to be said;
// runs: of all managers.
export function makeTimeline(holder, notes, zoom, runs) {
  let made = null;
  let [run, lanes, plots] = [null, [], []];
  const hidden = new Set(); // entries of the legend
  const hover = element('div', { class: 'hover', hidden: true });
  const height = () => TOP + lanes.length * LANE + plots.length * (CURVE + GAP) + 84;

  // The mark under the pointer, or at most 2 pixels beside it: {group, item}.
  function markAt({ offsetX, offsetY }) {
    const lane = lanes[Math.floor((offsetY - TOP) / LANE)];
    const { left, right } = margins(holder.clientWidth);
    const width = holder.clientWidth - left - right;
    if (!lane || offsetX < left || offsetX > left + width) return null;
    const pixel = (zoom.end - zoom.start) / width;
    const at = zoom.start + (offsetX - left) * pixel;
    for (const group of [...lane.groups].reverse().filter(({ legend: name }) => !hidden.has(name))) {
      const exact = itemAt(group.spans, at);
      const item = exact >= 0 ? exact : itemAt(group.spans, at, 2 * pixel);
      if (item >= 0) return { group, item };
    }
    return null;
  }

  function showHover(event) {
    const mark = markAt(event);
    hover.hidden = !mark;
    hover.replaceChildren(...(mark ? [mark.group.tip(mark.item)] : []));
    if (mark) placeBeside(hover, event, holder);
  }

  function look(event) {
    const mark = markAt(event);
    if (!mark?.group.kernel) return;
    const { begin_ps: begin, end_ps: end } = run.history.kernels;
    const room = (end[mark.item] - begin[mark.item]) * 0.05;
    zoom.set(begin[mark.item] - room, end[mark.item] + room);
  }

  function options(width) {
    hidden.clear();
    return figureOptions(run, lanes, plots, zoom, width);
  }

  function draw() {
    if (made) return made.redraw();
    made = makeChart(holder, options, height);
    holder.append(hover);
    followZoom(made, zoom);
    made.chart.on('legendselectchanged', ({ selected }) => {
      hidden.clear();
      for (const name of Object.keys(selected)) if (!selected[name]) hidden.add(name);
    });
    const pointer = made.chart.getZr();
    pointer.on('mousemove', showHover);
    pointer.on('click', look);
    pointer.on('globalout', () => showHover({}));
    return undefined;
  }

  return {
    show(next) {
      run = next;
      lanes = lanesOf(run, runs);
      plots = curvesOf(run);
      const marks = lanes.flatMap(({ groups }) => groups).reduce((total, { spans }) => total + spans.begin.length, 0);
      holder.dataset.marks = String(marks);
      holder.dataset.lanes = lanes.map(({ name }) => name).join('|');
      holder.dataset.plots = plots.map(({ title }) => title).join('|');
      notes.textContent = leftOut(run.history);
      draw();
    },
  };
}
