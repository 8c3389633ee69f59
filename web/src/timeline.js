// SPDX-License-Identifier: Apache-2.0
// A run over time: above, lanes with a mark for each kernel, copy, batch and transfer; below, curves of the bins of its history
// (docs/json.md): far-faults, evictions, how busy the link was, how much was in GPU memory. All share one axis of time.
import { axisLook, cutMiddle, echarts, legend, makeChart, tooltip } from './charts.js';
import { axisOf, bytes, count, share, time } from './format.js';
import { tip } from './page.js';
import { colour } from './theme.js';
import { followZoom, zoomOptions } from './zoom.js';

const LANE = 24;
const CURVE = 62;
const GAP = 36;
const TOP = 40;

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

const rowsOf = (list) => (list ? Array.from({ length: list.count }, (_, i) => i) : []);

// {name, marks: [{begin, end, colour, label, legend, tip()}]} of each lane that has any.
function lanesOf(run) {
  const { kernels, copies, batches, transfers } = run.history;
  const kernelName = (index) => run.kernels?.[index]?.name ?? `kernel ${index}`;
  const span = (list, i) => [
    ['from', time(list.begin_ps[i])],
    ['for', time(list.end_ps[i] - list.begin_ps[i])],
  ];
  const lanes = [];
  const streams = [...new Set(kernels?.stream ?? [])].sort((a, b) => a - b);
  const kernelMark = (i) => ({
    begin: kernels.begin_ps[i],
    end: kernels.end_ps[i],
    colour: 'kernel',
    label: kernelName(kernels.kernel[i]),
    legend: 'kernel',
    kernel: true,
    tip: () =>
      tip(
        kernelName(kernels.kernel[i]),
        [
          ['launch', String(kernels.launch[i] + 1)],
          ...(run.kernels?.[kernels.kernel[i]]?.range ? [['range', run.kernels[kernels.kernel[i]].range]] : []),
          ...(run.kernels?.[kernels.kernel[i]]?.site ? [['launched at', run.kernels[kernels.kernel[i]].site]] : []),
          ['stream', String(kernels.stream[i])],
          ...span(kernels, i),
          ['thread blocks', count(kernels.blocks[i])],
        ],
        'Click: look at it alone.',
      ),
  });
  const each = streams.length > 1 && streams.length <= 8;
  for (const stream of each ? streams : streams.slice(0, 1)) {
    lanes.push({
      name: each ? `kernels, stream ${stream}` : 'kernels',
      marks: rowsOf(kernels)
        .filter((i) => !each || kernels.stream[i] === stream)
        .map(kernelMark),
    });
  }
  lanes.push({
    name: "program's copies",
    marks: rowsOf(copies).map((i) => ({
      begin: copies.begin_ps[i],
      end: copies.end_ps[i],
      colour: 'host',
      legend: "the program's copy",
      tip: () =>
        tip(
          `the program asks: ${copies.kind[i]}`,
          [['bytes', bytes(copies.bytes[i])], ...span(copies, i), ['stream', String(copies.stream[i])]],
          'From its turn in its stream to its end; what the link carried for it is below.',
        ),
    })),
  });
  lanes.push({
    name: 'fault batches',
    marks: rowsOf(batches).map((i) => ({
      begin: batches.begin_ps[i],
      end: batches.end_ps[i],
      colour: 'fault',
      legend: 'batch',
      outline: true,
      tip: () =>
        tip('a batch of far-faults is served', [
          ['far-faults', count(batches.faults[i])],
          ['moved in', bytes(batches.bytes[i])],
          ...span(batches, i),
        ]),
    })),
  });
  for (const [direction, name] of [
    ['h2d', 'moved to GPU'],
    ['d2h', 'moved to CPU'],
  ]) {
    lanes.push({
      name,
      marks: rowsOf(transfers)
        .filter((i) => transfers.direction[i] === direction)
        .map((i) => {
          const [cause, shade] = causeOf(transfers.cause[i]);
          return {
            begin: transfers.begin_ps[i],
            end: transfers.end_ps[i],
            colour: shade,
            legend: cause,
            tip: () =>
              tip(`${direction === 'h2d' ? 'to the GPU' : 'to the CPU'}: ${cause}`, [
                ['bytes', bytes(transfers.bytes[i])],
                ['pieces', count(transfers.pieces[i])],
                ...span(transfers, i),
              ]),
          };
        }),
    });
  }
  if (transfers?.left_out) {
    for (const lane of lanes.filter(({ name }) => name.startsWith('moved'))) {
      const end = lane.marks.reduce((latest, mark) => Math.max(latest, mark.end), 0);
      lane.marks.push({
        begin: end,
        end: run.time_ps,
        colour: 'rest',
        label: 'too many to list: see the curves',
        legend: 'not listed',
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
    }
  }
  return lanes.filter(({ marks }) => marks.length);
}

// The rectangle of a mark, at least 1.5 pixels wide; nothing where it is out of sight.
function markShape(mark, params, api) {
  const [left, top] = api.coord([mark.begin, mark.lane]);
  const [right] = api.coord([mark.end, mark.lane]);
  const plot = params.coordSys;
  if (right < plot.x - 1 || left > plot.x + plot.width + 1) return null;
  const shape = echarts.graphic.clipRectByRect(
    { x: left, y: top - LANE * 0.36, width: Math.max(1.5, right - left), height: LANE * 0.72 },
    plot,
  );
  if (!shape) return null;
  const fill = colour(mark.colour);
  return {
    type: 'rect',
    shape: { ...shape, r: shape.width > 6 ? 2 : 0 },
    style: mark.outline ? { fill, fillOpacity: 0.35, stroke: fill, lineWidth: 1 } : { fill },
    textContent: mark.label
      ? {
          style: {
            text: shape.width > 44 ? mark.label : '',
            fill: colour(mark.ink ?? 'on-kernel'),
            fontSize: 12,
            width: Math.max(1, shape.width - 10),
            overflow: 'truncate',
            ellipsis: '…',
          },
        }
      : undefined, // an element that had a text keeps it until it gets another
    textConfig: { position: 'inside' },
  };
}

// One series per entry of the legend, so that it can be switched off.
function laneSeries(lanes) {
  const groups = new Map();
  lanes.forEach((lane, row) =>
    lane.marks.forEach((mark) => {
      mark.lane = row;
      if (!groups.has(mark.legend)) groups.set(mark.legend, []);
      groups.get(mark.legend).push(mark);
    }),
  );
  return [...groups].map(([name, marks]) => ({
    type: 'custom',
    id: name,
    name,
    xAxisIndex: 0,
    yAxisIndex: 0,
    clip: true,
    itemStyle: { color: colour(marks[0].colour) },
    encode: { x: [0, 1], y: 2 },
    data: marks.map((mark) => [mark.begin, mark.end, mark.lane]),
    renderItem: (params, api) => markShape(marks[params.dataIndex], params, api),
    tooltip: { formatter: ({ dataIndex }) => marks[dataIndex].tip() },
    marks,
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
  const names = laneSeries(lanes);
  const grids = [
    { left, right, top: TOP, height: lanesHeight, outerBoundsMode: 'none', tooltip: { trigger: 'item' } },
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
      {
        bottom: 6,
        height: 22,
        left,
        right,
        showDetail: false,
        brushSelect: false,
        borderColor: colour('line'),
        fillerColor: `${colour('accent')}2e`,
        backgroundColor: colour('page'),
        handleStyle: { color: colour('card'), borderColor: colour('accent') },
        moveHandleStyle: { color: colour('faint') },
        dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
        selectedDataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
      },
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

// Returns {show(run)}: draws a run that has a history; zoom as zoom.js makes it; notes: an element for what has to be said.
export function makeTimeline(holder, notes, zoom) {
  let made = null;
  let [run, lanes, plots] = [null, [], []];
  const height = () => TOP + lanes.length * LANE + plots.length * (CURVE + GAP) + 84;

  function draw() {
    if (made) return made.redraw();
    made = makeChart(holder, (width) => figureOptions(run, lanes, plots, zoom, width), height);
    followZoom(made, zoom);
    made.chart.on('click', { seriesType: 'custom' }, ({ dataIndex, seriesName }) => {
      const mark = lanes.flatMap(({ marks }) => marks).filter((one) => one.legend === seriesName)[dataIndex];
      if (!mark?.kernel) return;
      const room = (mark.end - mark.begin) * 0.05;
      zoom.set(mark.begin - room, mark.end + room);
    });
    return undefined;
  }

  return {
    show(next) {
      run = next;
      lanes = lanesOf(run);
      plots = curvesOf(run);
      holder.dataset.marks = String(lanes.reduce((total, { marks }) => total + marks.length, 0));
      holder.dataset.lanes = lanes.map(({ name }) => name).join('|');
      holder.dataset.plots = plots.map(({ title }) => title).join('|');
      notes.textContent = leftOut(run.history);
      draw();
    },
  };
}
