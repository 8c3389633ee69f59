// SPDX-License-Identifier: Apache-2.0
// All managers over time, one above the other on one axis: when kernels ran, how busy the link was each way, far-faults. Every manager has a
// history of its own with bins of its own width (docs/json.md), so far-faults are drawn as a rate: one scale holds for all.
import { axisLook, cutMiddle, makeChart } from './charts.js';
import { axisOf, bytes, count, share, time } from './format.js';
import { element, isDrag, placeBeside, tip } from './page.js';
import { drawStrips, drawText, fillBins } from './sheet.js';
import { itemAt, makeSpans, rectangles } from './spans.js';
import { colour } from './theme.js';
import { margins } from './timeline.js';
import { followZoom, zoomOptions } from './zoom.js';

const STRIP = 14; // pixels: of the kernels
const AREA = 24; // of the link, and of far-faults
const INNER = 3;
const TOP = 4;
const GAP = 14; // between managers
const FIRST = 12; // managers that are shown before all are asked for

export const hasHistory = (run) => !run.error && Boolean(run.history?.bins) && run.time_ps > 0;

/* ---- what is drawn ---- */

// What is drawn of a run. listed: up to where each launch has its span; from there on only bins tell, `running` is their share of the time.
function rowOf(run, index) {
  const { kernels, series, bin_ps: bin, bins } = run.history;
  const listed = kernels?.left_out ? (kernels.begin_ps[kernels.count - 1] ?? 0) : Infinity;
  const perBin = (name) => series[name]?.map((value) => value / bin);
  return {
    run,
    index,
    spans: makeSpans(kernels),
    listed,
    bin,
    bins,
    running: listed < Infinity ? perBin('kernel_ps') : null,
    toGpu: perBin('h2d_busy_ps'),
    toCpu: perBin('d2h_busy_ps'),
    faults: perBin('faults'),
  };
}

/* ---- the figure ---- */

/* runs; holder, key, notes: elements; zoom: of the longest run; onChoose(index), isChosen(index).
 * Returns {redraw(), redrawKey(): after the colours changed}; the holder's data tell what is drawn. Nothing is drawn of runs without a history. */
export function makeSideBySide(runs, { holder, key, notes, zoom, onChoose, isChosen }) {
  const every = runs.map((run, i) => (hasHistory(run) ? rowOf(run, i) : null)).filter(Boolean);
  let rows = every.slice(0, FIRST);
  const most = Math.max(0, ...every.map(({ faults }) => Math.max(0, ...(faults ?? []))));
  const parts = ['link', ...(most > 0 ? ['faults'] : [])];
  const rowHeight = STRIP + parts.length * (AREA + INNER) + GAP;
  const height = () => rows.length * rowHeight;
  const hover = element('div', { class: 'hover', hidden: true });

  const topOf = (index) => TOP + index * rowHeight + GAP / 2;

  function paintRow(pen, row, top, place) {
    const { run, bin, bins, listed } = row;
    const scale = place.width / (place.end - place.start);
    const until = Math.max(0, Math.min(place.width, (run.time_ps - place.start) * scale));
    const bottom = (part) => top + STRIP + (parts.indexOf(part) + 1) * (AREA + INNER);
    pen.fillStyle = colour('absent');
    for (const [y, high] of [[top, STRIP], ...parts.map((part) => [bottom(part) - AREA, AREA])]) pen.fillRect(place.left, y, until, high);
    pen.fillStyle = colour('kernel');
    drawStrips(pen, rectangles(row.spans, place.start, place.end, place.left, scale), top, STRIP);
    const area = (values, full, shade, base, high, opacity, from = 0) => {
      if (!values) return;
      pen.fillStyle = colour(shade);
      pen.globalAlpha = opacity;
      fillBins(pen, { bin, bins, from, until: run.time_ps, above: (i) => Math.min(1, values[i] / full) * high }, place, base);
      pen.globalAlpha = 1;
    };
    area(row.running, 1, 'kernel', top + STRIP, STRIP, 0.6, listed);
    area(row.toGpu, 1, 'in', bottom('link'), AREA, 0.85);
    area(row.toCpu, 1, 'out', bottom('link'), AREA, 0.75);
    if (most > 0) area(row.faults, most, 'fault', bottom('faults'), AREA, 0.9);
  }

  function paint(pen, width) {
    const { left, right } = margins(width);
    const place = { left, width: width - left - right, start: zoom.start, end: zoom.end };
    rows.forEach((row, i) => {
      const top = topOf(i);
      const chosen = isChosen(row.index);
      drawText(pen, cutMiddle(row.run.memory, left - 14), left - 8, top, {
        fill: colour(chosen ? 'accent' : 'text'),
        weight: chosen ? 700 : 400,
        align: 'right',
      });
      drawText(pen, time(row.run.time_ps), left - 8, top + 17, { fill: colour('faint-text'), align: 'right' });
      paintRow(pen, row, top, place);
    });
  }

  function options(width) {
    const { left, right } = margins(width);
    const look = axisLook();
    const axis = axisOf(zoom.whole, 'time');
    return {
      grid: { left, right, top: TOP, height: height(), outerBoundsMode: 'none' },
      xAxis: {
        ...look,
        type: 'value',
        axisLine: { ...look.axisLine, onZero: false },
        min: 0,
        max: zoom.whole,
        splitNumber: width < 600 ? 3 : 8,
        splitLine: { show: true, lineStyle: { color: colour('grid') } },
        name: `time (${axis.name})`,
        nameLocation: 'middle',
        nameGap: 26,
        axisLabel: { ...look.axisLabel, showMinLabel: false, showMaxLabel: false, hideOverlap: true, formatter: axis.format },
      },
      yAxis: { type: 'value', min: 0, max: height(), inverse: true, show: false },
      dataZoom: zoomOptions(zoom, [0], { left, right }),
    };
  }

  function rowAt(event) {
    const at = made.chart.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]);
    const row = at && at[1] >= 0 ? rows[Math.floor(at[1] / rowHeight)] : null;
    return { row, at: at?.[0] };
  }

  function rowTip(row, at) {
    const { run, bin, bins } = row;
    const { kernels, series } = run.history;
    const i = Math.min(bins - 1, Math.floor(at / bin));
    const list = [];
    const k = itemAt(row.spans, at);
    if (k >= 0)
      list.push(['kernel', run.kernels?.[kernels.kernel[k]]?.name ?? '?', colour('kernel')], ['launch', String(kernels.launch[k] + 1)]);
    list.push(['bin', `${time(i * bin)} to ${time((i + 1) * bin)}`]);
    if (row.toGpu) list.push(['link, to GPU', share(row.toGpu[i]), colour('in')]);
    if (row.toCpu) list.push(['link, to CPU', share(row.toCpu[i]), colour('out')]);
    if (series.faults) list.push(['far-faults', count(series.faults[i]), colour('fault')]);
    if (series.resident_bytes) list.push(['in GPU memory', bytes(series.resident_bytes[i])]);
    return tip(
      run.memory,
      list,
      at > run.time_ps ? 'The program was over.' : `At ${time(at)}. Click: show this manager in the figures below.`,
    );
  }

  function showHover(event) {
    const { row, at } = made.chart.containPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]) ? rowAt(event) : {};
    hover.hidden = !row || at < 0 || isDrag(event);
    if (hover.hidden) return;
    hover.replaceChildren(rowTip(row, at));
    placeBeside(hover, event, holder);
  }

  function say() {
    const entry = (shade, text) => {
      const mark = element('i');
      mark.style.background = colour(shade);
      return element('span', { class: 'key' }, mark, text);
    };
    key.replaceChildren(
      entry('kernel', 'a kernel runs'),
      entry('in', 'link, to GPU'),
      entry('out', 'link, to CPU'),
      ...(most > 0 ? [entry('fault', `far-faults (full height: ${count(most * 1e9)} per ms)`)] : []),
    );
    const cut = every.filter(({ listed }) => listed < Infinity);
    notes.replaceChildren(
      cut.length
        ? `Under ${cut.map(({ run }) => run.memory).join(', ')} only the first ${count(cut[0].run.history.kernels.count)} launches are drawn each; behind them the height is the share of the time in which a kernel ran. `
        : '',
    );
    const without = runs.filter((run) => !hasHistory(run));
    if (without.length) notes.append(`Without a history: ${without.map(({ memory }) => memory).join(', ')}. `);
    if (every.length > rows.length)
      notes.append(
        `The first ${rows.length} managers of ${every.length} are shown. `,
        element('button', { type: 'button', onclick: showAll }, 'show all'),
      );
    holder.dataset.marks = String(rows.reduce((total, { spans }) => total + spans.begin.length, 0));
    holder.dataset.managers = rows.map(({ run }) => run.memory).join('|');
  }

  function showAll() {
    rows = every;
    say();
    made.redraw();
  }

  const sayZoom = () => {
    holder.dataset.from = String(Math.round(zoom.start));
    holder.dataset.to = String(Math.round(zoom.end));
  };

  zoom.reset(Math.max(1, ...every.map(({ run }) => run.time_ps)));
  say();
  sayZoom();
  const made = makeChart(holder, options, () => height() + 84, paint);
  holder.append(hover);
  followZoom(made, zoom);
  zoom.whenChanged(sayZoom);
  const pointer = made.chart.getZr();
  pointer.on('mousemove', showHover);
  pointer.on('globalout', () => {
    hover.hidden = true;
  });
  pointer.on('click', (event) => {
    const { row } = rowAt(event);
    if (row && event.offsetY < height()) onChoose(row.index);
  });
  return { redraw: made.redraw, redrawKey: say };
}
