// SPDX-License-Identifier: Apache-2.0
// All managers over time, one above the other on one axis: when kernels ran, how busy the link was each way, far-faults. Every manager has a
// history of its own with bins of its own width (docs/json.md), so far-faults are drawn as a rate: one scale holds for all.
import { axisLook, cutMiddle, makeChart } from './charts.js';
import { axisOf, bytes, count, share, time } from './format.js';
import { element, placeBeside, tip } from './page.js';
import { itemAt, makeSpans, rectangles } from './spans.js';
import { colour } from './theme.js';
import { margins } from './timeline.js';
import { followZoom, zoomOptions } from './zoom.js';

const STRIP = 14; // pixels: of the kernels
const AREA = 24; // of the link, and of far-faults
const INNER = 3;
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

// The outline of a staircase of bins above `base`, as points; `value` 1 is `height` pixels high.
function staircase(values, row, from, start, end, place) {
  const { left, scale, base, height } = place;
  const points = [];
  const first = Math.max(0, Math.floor(Math.max(from, start) / row.bin));
  for (let i = first; i < row.bins && i * row.bin < end; i++) {
    const [begin, until] = [Math.max(from, start, i * row.bin), Math.min(end, row.run.time_ps, (i + 1) * row.bin)];
    if (until <= begin) continue;
    const y = base - Math.min(1, values[i]) * height;
    points.push([left + (begin - start) * scale, y], [left + (until - start) * scale, y]);
  }
  if (!points.length) return null;
  return [[points[0][0], base], ...points, [points[points.length - 1][0], base]];
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

  function rowShapes(params, api) {
    const row = rows[params.dataIndex];
    const plot = params.coordSys;
    const { start, end } = zoom;
    const scale = plot.width / (end - start);
    const [, top] = api.coord([start, params.dataIndex * rowHeight + GAP / 2]);
    const place = { left: plot.x, scale };
    const bottom = (part) => top + STRIP + (parts.indexOf(part) + 1) * (AREA + INNER);
    const until = plot.x + Math.max(0, Math.min(plot.width, (row.run.time_ps - start) * scale));
    const rect = (y, h, fill) => ({ type: 'rect', shape: { x: plot.x, y, width: until - plot.x, height: h }, style: { fill } });
    const area = (values, from, shade, base, h, opacity) => {
      const points = values && staircase(values, row, from, start, end, { ...place, base, height: h });
      return points ? [{ type: 'polygon', shape: { points }, style: { fill: colour(shade), opacity } }] : [];
    };
    return {
      type: 'group',
      children: [
        rect(top, STRIP, colour('absent')),
        ...parts.map((part) => rect(bottom(part) - AREA, AREA, colour('absent'))),
        {
          type: 'strips',
          shape: { rectangles: rectangles(row.spans, start, end, plot.x, scale), y: top, height: STRIP },
          style: { fill: colour('kernel') },
        },
        ...area(row.running, row.listed, 'kernel', top + STRIP, STRIP, 0.6),
        ...area(row.toGpu, 0, 'in', bottom('link'), AREA, 0.85),
        ...area(row.toCpu, 0, 'out', bottom('link'), AREA, 0.75),
        ...(most > 0
          ? area(
              row.faults?.map((rate) => rate / most),
              0,
              'fault',
              bottom('faults'),
              AREA,
              0.9,
            )
          : []),
      ],
    };
  }

  function options(width) {
    const { left, right } = margins(width);
    const look = axisLook();
    const axis = axisOf(zoom.whole, 'time');
    const label = (params, api) => {
      const { run, index } = rows[params.dataIndex];
      const [, y] = api.coord([zoom.start, params.dataIndex * rowHeight + GAP / 2]);
      const text = (at, words, style) => ({
        type: 'text',
        style: { x: params.coordSys.x - 8, y: y + at, text: cutMiddle(words, left - 14), align: 'right', fontSize: 12, ...style },
      });
      return {
        type: 'group',
        children: [
          text(0, run.memory, { fill: colour(isChosen(index) ? 'accent' : 'text'), fontWeight: isChosen(index) ? 700 : 400 }),
          text(17, time(run.time_ps), { fill: colour('faint-text') }),
        ],
      };
    };
    const series = (renderItem, extra) => ({
      type: 'custom',
      silent: true,
      data: rows.map((_, i) => [0, i]),
      encode: { x: -1, y: -1 },
      renderItem,
      ...extra,
    });
    return {
      grid: { left, right, top: 4, height: height(), outerBoundsMode: 'none' },
      xAxis: {
        ...look,
        type: 'value',
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
      series: [series(rowShapes, { clip: true, z: 2 }), series(label, { clip: false, z: 3 })],
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
    hover.hidden = !row || at < 0;
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
  const made = makeChart(holder, options, () => height() + 84);
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
