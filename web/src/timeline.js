// SPDX-License-Identifier: Apache-2.0
// A run over time: above, lanes with a mark for each kernel, copy, batch and transfer; below, curves of the bins of its history
// (curves.js). All share one axis of time, which is the chart library's; marks and curves are drawn on a sheet.
import { axisLook, cutEnd, cutMiddle, makeChart } from './charts.js';
import { curvesOf, curveTip, drawPlots, EACH } from './curves.js';
import { axisOf, bytes, count, ratio, time } from './format.js';
import { element, isDrag, placeBeside, tip } from './page.js';
import { drawStrips, drawText, outlineStrips } from './sheet.js';
import { addSpan, itemAt, makeSpans, rectangles } from './spans.js';
import { colour, whenChanged } from './theme.js';
import { followZoom, zoomOptions } from './zoom.js';

const LANE = 24;
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

/* ---- the figure ---- */

// The marks of a group that are in sight, with the names of those that have room for one; middle: of its lane.
function drawGroup(pen, group, middle, place) {
  const { left, width, start, end } = place;
  const [y, high] = [middle - LANE * 0.36, LANE * 0.72];
  const list = rectangles(group.spans, start, end, left, width / (end - start));
  pen.fillStyle = colour(group.colour);
  pen.globalAlpha = group.outline ? 0.35 : 1;
  drawStrips(pen, list, y, high);
  pen.globalAlpha = 1;
  if (group.outline) outlineStrips(pen, list, y, high, colour(group.colour));
  for (const [x, wide, item] of list) {
    if (!group.label || wide <= 44 || item < 0) continue;
    const look = { fill: colour(group.ink ?? 'on-kernel'), align: 'center', baseline: 'middle' };
    drawText(pen, cutEnd(group.label(item), wide - 10), x + wide / 2, middle, look);
  }
}

function drawLanes(pen, lanes, hidden, place) {
  const { left, width } = place;
  lanes.forEach(({ name, groups }, row) => {
    const middle = TOP + (row + 0.5) * LANE;
    pen.fillStyle = colour('grid');
    pen.fillRect(left, TOP + row * LANE, width, 1);
    drawText(pen, cutMiddle(name, left - 14), left - 8, middle, { fill: colour('text'), align: 'right', baseline: 'middle' });
    for (const group of groups) if (!hidden.has(group.legend)) drawGroup(pen, group, middle, place);
  });
}

// The axis of time, which stands below the curves, and the bar to zoom with.
function figureOptions(lanes, plots, zoom, width) {
  const { left, right } = margins(width);
  const look = axisLook();
  const axis = axisOf(zoom.whole, 'time');
  const height = lanes.length * LANE;
  return {
    grid: { left, right, top: TOP, height, outerBoundsMode: 'none' },
    xAxis: {
      ...look,
      type: 'value',
      axisLine: { ...look.axisLine, onZero: false },
      min: 0,
      max: zoom.whole,
      offset: plots.length * EACH,
      splitNumber: width < 600 ? 3 : 8,
      splitLine: { show: true, lineStyle: { color: colour('grid') } },
      axisLabel: { ...look.axisLabel, showMinLabel: false, showMaxLabel: false, hideOverlap: true, formatter: axis.format },
      name: `time (${axis.name})`,
      nameLocation: 'middle',
      nameGap: 26,
    },
    yAxis: { type: 'value', min: 0, max: height, inverse: true, show: false },
    dataZoom: zoomOptions(zoom, [0], { left, right }),
    series: [],
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
  const line = element('div', { class: 'time-line', hidden: true }); // at the pointer's time, through all curves
  const legend = element('div', { class: 'legend' });
  const curvesTop = () => TOP + lanes.length * LANE;
  const height = () => curvesTop() + plots.length * EACH + 84;
  const placeOf = (width) => {
    const { left, right } = margins(width);
    return { left, width: width - left - right, start: zoom.start, end: zoom.end };
  };

  function paint(pen, width) {
    drawLanes(pen, lanes, hidden, placeOf(width));
    drawPlots(pen, plots, curvesTop(), placeOf(width), run);
  }

  // The mark under the pointer, or at most 2 pixels beside it: {group, item}.
  function markAt({ offsetX, offsetY }) {
    const lane = lanes[Math.floor((offsetY - TOP) / LANE)];
    const { left, width } = placeOf(holder.clientWidth);
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

  // What the curves are at the pointer's time, if it is upon them.
  function curvesAt({ offsetX, offsetY }) {
    const { left, width } = placeOf(holder.clientWidth);
    const upon = offsetY >= curvesTop() && offsetY < curvesTop() + plots.length * EACH && offsetX >= left && offsetX <= left + width;
    if (!upon) return null;
    return curveTip(run, plots, zoom.start + ((offsetX - left) * (zoom.end - zoom.start)) / width);
  }

  function showHover(event) {
    const mark = isDrag(event) ? null : markAt(event);
    const curves = mark || isDrag(event) ? null : curvesAt(event);
    const found = mark ? mark.group.tip(mark.item) : curves;
    line.hidden = !curves;
    hover.hidden = !found;
    if (curves) line.style.cssText = `left: ${event.offsetX}px; top: ${curvesTop()}px; height: ${plots.length * EACH}px`;
    if (!found) return;
    hover.replaceChildren(found);
    placeBeside(hover, event, holder);
  }

  function look(event) {
    const mark = markAt(event);
    if (!mark?.group.kernel) return;
    const { begin_ps: begin, end_ps: end } = run.history.kernels;
    const room = (end[mark.item] - begin[mark.item]) * 0.05;
    zoom.set(begin[mark.item] - room, end[mark.item] + room);
  }

  // A switch for each kind of mark.
  function showLegend() {
    const kinds = new Map(lanes.flatMap(({ groups }) => groups.map((group) => [group.legend, group.colour])));
    legend.replaceChildren(
      ...[...kinds].map(([name, shade]) => {
        const mark = element('i');
        mark.style.background = colour(shade);
        const toggle = () => {
          if (!hidden.delete(name)) hidden.add(name);
          button.setAttribute('aria-pressed', String(!hidden.has(name)));
          made.repaint();
        };
        const button = element('button', { type: 'button', 'aria-pressed': String(!hidden.has(name)), onclick: toggle }, mark, name);
        return button;
      }),
    );
  }

  function draw() {
    showLegend();
    if (made) return made.redraw();
    made = makeChart(holder, (width) => figureOptions(lanes, plots, zoom, width), height, paint);
    holder.append(legend, line, hover);
    whenChanged(showLegend);
    followZoom(made, zoom);
    const pointer = made.chart.getZr();
    pointer.on('mousemove', showHover);
    pointer.on('click', look);
    pointer.on('globalout', () => showHover({}));
    return undefined;
  }

  return {
    show(next) {
      run = next;
      hidden.clear();
      line.hidden = hover.hidden = true;
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
