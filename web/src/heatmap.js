// SPDX-License-Identifier: Apache-2.0
// The map of memory over time: each allocation is a band, cut into rows of addresses; each cell is a row in a bin of time. It shows what
// was in GPU memory, with far-faults and evictions upon it, or how often something happened there. Data: `heat` of a run's history.
import { axisLook, cutMiddle, echarts, makeChart } from './charts.js';
import { axisOf, bytes, count, share, time } from './format.js';
import { element, isDrag, placeBeside, tip } from './page.js';
import { colour } from './theme.js';
import { margins } from './timeline.js';
import { followZoom, zoomOptions } from './zoom.js';

const LEVELS = 16; // of a colour
const BANDS = 12; // allocations that are shown before all are asked for
const GAP = 8; // pixels between bands
const PLOT = 380; // pixels that the bands may take together, if that leaves each enough

export const VIEWS = [
  {
    key: 'pages',
    name: 'pages on the GPU',
    explain:
      'A band is an allocation, from its first byte (top) to its last; a cell is a stretch of its addresses during a stretch of time, its blue the stronger the more of it is in GPU memory. ' +
      'Cells with far-faults and with evictions have their colour.',
    look: 'Look for bands that fill, empty and fill again (thrashing), for diagonal fronts of far-faults (a kernel that walks through an array: a prefetcher could run ahead of it), and for pages that are there long before or after they are used.',
  },
  {
    key: 'accesses',
    name: 'accesses',
    list: 'accesses',
    shade: 'kernel',
    unit: 'warp accesses',
    explain: 'How often kernels touched each part of each allocation (logarithmic: each shade is a multiple of the one before).',
    look: 'Look for parts that are read again and again, and for allocations that only one kernel needs.',
  },
  {
    key: 'faults',
    name: 'far-faults',
    list: 'faults',
    shade: 'fault',
    unit: 'far-faults',
    explain: 'How many far-faults were served in each part of each allocation (logarithmic).',
    look: 'Look for rows that fault more than once: their pages were thrown out, or taken back by the CPU, while they were still wanted.',
  },
  {
    key: 'evicted',
    name: 'evictions',
    list: 'evicted_bytes',
    shade: 'evict',
    unit: 'evicted',
    bytes: true,
    explain: 'What had to leave GPU memory to make room, by where it lay (logarithmic).',
    look: 'Look for evictions right before far-faults in the same row: the wrong pages went.',
  },
];

/* ---- cells ---- */

// The numbers of a list of (bin, row, number), as a grid of rows by bins.
function gridOf(map, bins, list) {
  const grid = new Float64Array(map.rows * bins);
  for (let i = 0; list && i + 2 < list.length; i += 3) {
    const [bin, row, value] = [list[i], list[i + 1], list[i + 2]];
    if (bin < bins && row < map.rows) grid[row * bins + bin] = value;
  }
  return grid;
}

// resident_bytes lists changes: each holds until the row's next one.
function residentGrid(map, bins) {
  const grid = new Float64Array(map.rows * bins).fill(-1);
  const list = map.resident_bytes;
  for (let i = 0; list && i + 2 < list.length; i += 3)
    if (list[i] < bins && list[i + 1] < map.rows) grid[list[i + 1] * bins + list[i]] = list[i + 2];
  for (let row = 0; row < map.rows; row++) {
    let level = 0;
    for (let at = row * bins; at < (row + 1) * bins; at++) {
      if (grid[at] >= 0) level = grid[at];
      else grid[at] = level;
    }
  }
  return grid;
}

// The bytes that row `row` of the map has: the last one may be short.
const rowBytes = (map, row) => Math.min(map.row_bytes, map.bytes - row * map.row_bytes);

// Runs of cells of one level, as rectangles [first bin, bins, row] by level (0: nothing).
function runsByLevel(map, bins, levelOf) {
  const found = new Map();
  for (let row = 0; row < map.rows; row++) {
    for (let bin = 0; bin < bins;) {
      const level = levelOf(row, bin);
      let end = bin + 1;
      while (end < bins && levelOf(row, end) === level) end++;
      if (level) {
        if (!found.has(level)) found.set(level, []);
        found.get(level).push([bin, end - bin, row]);
      }
      bin = end;
    }
  }
  return found;
}

const Cells = echarts.graphic.extendShape({
  shape: { rectangles: [], x: 0, y: 0, bin: 1, row: 1 },
  buildPath(pen, { rectangles, x, y, bin, row }) {
    const thin = row < 3 ? 0 : 0.5; // a line between cells, where there is room for one
    for (const [first, length, at] of rectangles)
      pen.rect(x + first * bin, y + at * row, Math.max(0.7, length * bin - (bin < 6 ? 0 : 0.5)), Math.max(0.7, row - thin));
  },
});
echarts.graphic.registerShape('cells', Cells);

// A colour between the empty cell's and `shade`, level 1 to LEVELS.
function mixed(shade, level) {
  const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [from, to] = [parse(colour('absent')), parse(colour(shade))];
  const part = 0.18 + (0.82 * level) / LEVELS;
  return `rgb(${from.map((c, i) => Math.round(c + (to[i] - c) * part)).join(',')})`;
}

/* ---- bands ---- */

// How high a row of each band is, such that together they take about PLOT pixels and the smallest can be seen.
function layout(bands) {
  const rows = bands.reduce((total, { map }) => total + map.rows, 0);
  const height = Math.max(1, Math.min(8, PLOT / rows));
  let y = 0;
  for (const band of bands) {
    band.top = y;
    band.height = Math.max(18, band.map.rows * height);
    y += band.height + GAP;
  }
  return y - GAP;
}

function bandsOf(run, all) {
  const { maps } = run.history.heat;
  const name = (map) => run.allocations?.find(({ id }) => id === map.allocation)?.name ?? `allocation ${map.allocation}`;
  const shown =
    all || maps.length <= BANDS
      ? maps
      : [...maps]
          .sort((a, b) => b.bytes - a.bytes)
          .slice(0, BANDS)
          .sort((a, b) => a.allocation - b.allocation);
  return shown.map((map) => ({ map, name: name(map) }));
}

// The layers of a band in this view: {level: rectangles} each with its colours.
function layersOf(band, view, bins, most) {
  const { map } = band;
  const logarithmic = (value) => (value ? Math.max(1, Math.min(LEVELS, Math.ceil((LEVELS * Math.log1p(value)) / Math.log1p(most)))) : 0);
  if (view.key !== 'pages') {
    band.values = gridOf(map, bins, map[view.list]);
    return [{ shade: view.shade, runs: runsByLevel(map, bins, (row, bin) => logarithmic(band.values[row * bins + bin])) }];
  }
  band.resident = residentGrid(map, bins);
  band.faults = gridOf(map, bins, map.faults);
  band.evicted = gridOf(map, bins, map.evicted_bytes);
  const at = (grid) => (row, bin) => (grid[row * bins + bin] ? LEVELS : 0);
  return [
    {
      shade: 'kernel',
      runs: runsByLevel(map, bins, (row, bin) => Math.ceil((LEVELS * 0.6 * band.resident[row * bins + bin]) / rowBytes(map, row))),
    },
    { shade: 'evict', runs: runsByLevel(map, bins, at(band.evicted)) },
    { shade: 'fault', runs: runsByLevel(map, bins, at(band.faults)) },
  ];
}

const largest = (bands, list) => {
  let most = 1;
  for (const { map } of bands) for (let i = 2; map[list] && i < map[list].length; i += 3) most = Math.max(most, map[list][i]);
  return most;
};

/* ---- the figure ---- */

function bandShapes(band, heat, bins, params, api) {
  const [left, top] = api.coord([0, band.top]);
  const [right, bottom] = api.coord([heat.bin_ps * bins, band.top + band.height]);
  const plot = params.coordSys;
  const scale = { x: left, y: top, bin: (right - left) / bins, row: (bottom - top) / band.map.rows };
  const [plotEnd] = api.coord([band.end, 0]);
  const clipPath = {
    type: 'rect',
    shape: { x: plot.x, y: top, width: Math.max(0, Math.min(plot.x + plot.width, plotEnd) - plot.x), height: bottom - top },
  };
  const cells = band.layers.flatMap(({ shade, runs }) =>
    [...runs].map(([level, rectangles]) => ({
      type: 'cells',
      shape: { rectangles, ...scale },
      style: { fill: mixed(shade, level) },
      silent: true,
    })),
  );
  return {
    type: 'group',
    silent: true,
    children: [
      {
        type: 'rect',
        shape: { x: plot.x, y: top, width: plot.width, height: bottom - top },
        style: { fill: colour('absent') },
        silent: true,
      },
      { type: 'group', clipPath, children: cells },
    ],
  };
}

const legendEntry = (shade, level, text) => {
  const mark = element('i');
  mark.style.background = level ? mixed(shade, level) : colour(shade);
  return element('span', { class: 'key' }, mark, text);
};

// marked: [colour, name] of what the view of pages marks.
function keyOf(view, most, marked) {
  if (view.key === 'pages')
    return [
      legendEntry('absent', 0, 'not on the GPU'),
      legendEntry('kernel', LEVELS * 0.3, 'half of it'),
      legendEntry('kernel', LEVELS * 0.6, 'all of it on the GPU'),
      ...marked.map(([shade, text]) => legendEntry(shade, LEVELS, text)),
    ];
  const text = (value) => (view.bytes ? bytes(value) : `${count(value)} ${view.unit}`);
  const half = Math.round(Math.expm1(Math.log1p(most) / 2));
  return [
    legendEntry('absent', 0, 'none'),
    ...(half > 1 && half < most ? [legendEntry(view.shade, LEVELS / 2, text(half))] : []),
    legendEntry(view.shade, LEVELS, `${text(most)} (most in a cell)`),
  ];
}

function cellTip(band, view, heat, bin, row) {
  const { map } = band;
  const at = row * heat.bins + bin;
  const rows = [
    ['time', `${time(bin * heat.bin_ps)} to ${time((bin + 1) * heat.bin_ps)}`],
    ['bytes', `from ${bytes(row * map.row_bytes)}, ${bytes(rowBytes(map, row))}`],
  ];
  if (view.key === 'pages') {
    rows.push(['on the GPU', share(band.resident[at] / rowBytes(map, row)), mixed('kernel', LEVELS * 0.6)]);
    if (band.faults[at]) rows.push(['far-faults', count(band.faults[at]), colour('fault')]);
    if (band.evicted[at]) rows.push(['evicted', bytes(band.evicted[at]), colour('evict')]);
  } else rows.push([view.unit, view.bytes ? bytes(band.values[at]) : count(band.values[at]), colour(view.shade)]);
  return tip(band.name, rows);
}

/* holder, zoom: as for the timeline; key: an element for the colours' meaning; notes: for what is left out.
 * Returns {show(run, view), views(run): the views that this run has something for}. */
export function makeHeatMap(holder, key, notes, zoom) {
  let made = null;
  let [run, view, bands, height, all] = [null, VIEWS[0], [], 0, false];
  const hover = element('div', { class: 'hover', hidden: true });

  function options(width) {
    const { left, right } = margins(width);
    const look = axisLook();
    const axis = axisOf(zoom.whole, 'time');
    const { heat } = run.history;
    const labels = {
      type: 'custom',
      clip: false,
      silent: true,
      z: 3,
      data: bands.map((_, i) => [0, i]),
      encode: { x: -1, y: -1 },
      renderItem: (params, api) => {
        const band = bands[params.dataIndex];
        const [, y] = api.coord([zoom.start, band.top + band.height / 2]);
        return {
          type: 'text',
          style: {
            x: params.coordSys.x - 8,
            y,
            text: cutMiddle(band.name, left - 14),
            align: 'right',
            verticalAlign: 'middle',
            fill: colour('text'),
            fontSize: 12,
          },
        };
      },
    };
    const cells = {
      type: 'custom',
      clip: true,
      silent: true,
      data: bands.map((_, i) => [0, i]),
      encode: { x: -1, y: -1 },
      renderItem: (params, api) => bandShapes(bands[params.dataIndex], heat, heat.bins, params, api),
    };
    return {
      grid: { left, right, top: 4, height, outerBoundsMode: 'none' },
      xAxis: {
        ...look,
        type: 'value',
        min: 0,
        max: zoom.whole,
        splitNumber: width < 600 ? 3 : 8,
        splitLine: { show: false },
        name: `time (${axis.name})`,
        nameLocation: 'middle',
        nameGap: 26,
        axisLabel: { ...look.axisLabel, showMinLabel: false, showMaxLabel: false, hideOverlap: true, formatter: axis.format },
      },
      yAxis: { type: 'value', min: 0, max: height, inverse: true, show: false },
      dataZoom: zoomOptions(zoom, [0], null),
      series: [cells, labels],
    };
  }

  function showHover(event) {
    const { heat } = run.history;
    const at = made.chart.containPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY])
      ? made.chart.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY])
      : null;
    const band = at && bands.find(({ top, height: h }) => at[1] >= top && at[1] < top + h);
    const bin = at && Math.floor(at[0] / heat.bin_ps);
    hover.hidden = !band || bin < 0 || bin >= heat.bins || isDrag(event);
    if (hover.hidden) return;
    const row = Math.min(band.map.rows - 1, Math.floor(((at[1] - band.top) / band.height) * band.map.rows));
    hover.replaceChildren(cellTip(band, view, heat, bin, row));
    placeBeside(hover, event, holder);
  }

  function draw() {
    const { heat } = run.history;
    bands = bandsOf(run, all);
    height = layout(bands);
    const most = view.list ? largest(bands, view.list) : 1;
    let cells = 0;
    for (const band of bands) {
      band.end = run.time_ps;
      band.layers = layersOf(band, view, heat.bins, most);
      for (const { runs } of band.layers) for (const rectangles of runs.values()) cells += rectangles.length;
    }
    holder.dataset.marks = String(cells);
    holder.dataset.bands = bands.map(({ name }) => name).join('|');
    showKey(most);
    sayWhatIsLeft(heat);
    if (made) return made.redraw();
    made = makeChart(holder, options, () => height + 52);
    holder.append(hover);
    made.chart.getZr().on('mousemove', showHover);
    made.chart.getZr().on('globalout', () => {
      hover.hidden = true;
    });
    followZoom(made, zoom);
    return undefined;
  }

  function showKey(most) {
    const some = (list) => bands.some(({ map }) => map[list]?.length);
    key.replaceChildren(
      ...keyOf(view, most, [
        ...(some('faults') ? [['fault', 'far-fault']] : []),
        ...(some('evicted_bytes') ? [['evict', 'eviction']] : []),
      ]),
    );
  }

  function sayWhatIsLeft(heat) {
    const hidden = heat.maps.length - bands.length;
    notes.replaceChildren(`A cell is ${time(heat.bin_ps)} wide. `);
    if (heat.left_out)
      notes.append(
        `The file has the maps of the first ${heat.maps.length} allocations that were used, and none of ${count(heat.left_out)} more. `,
      );
    if (hidden > 0)
      notes.append(
        `The ${BANDS} largest allocations of ${heat.maps.length} are shown. `,
        element(
          'button',
          {
            type: 'button',
            onclick: () => {
              all = true;
              draw();
            },
          },
          'show all',
        ),
      );
  }

  return {
    views: ({ history }) => VIEWS.filter(({ list }) => history.heat?.maps.some((map) => (map[list ?? 'resident_bytes']?.length ?? 0) > 0)),
    show(next, chosen) {
      [run, view] = [next, chosen];
      draw();
    },
    redrawKey: () => run && showKey(view.list ? largest(bands, view.list) : 1),
  };
}
