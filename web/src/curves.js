// SPDX-License-Identifier: Apache-2.0
// The curves below the lanes of a timeline: a plot each for far-faults, evictions, the link, what was in GPU memory, and thread blocks, with a
// step for each bin of the run's history (docs/json.md). All are drawn on a sheet (sheet.js), their axes and titles too.
import { bytes, count, share, time } from './format.js';
import { tip } from './page.js';
import { drawText, fillBins, strokeBins } from './sheet.js';
import { colour } from './theme.js';

const HEIGHT = 62; // pixels: of a plot
const GAP = 36; // above it, with its title
export const EACH = HEIGHT + GAP;

const sum = (list) => list.reduce((total, value) => total + value, 0);

// {title, kind, curves: [{name, shade, list}], end: of its axis} of each plot that has something to show.
export function curvesOf(run) {
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

export function curveTip(run, plots, at) {
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

/* ---- drawing ---- */

function drawAxes(pen, plot, top, { left, width }) {
  pen.fillStyle = colour('grid');
  for (const part of [0, 0.5]) pen.fillRect(left, Math.round(top + HEIGHT * part), width, 1);
  pen.fillStyle = colour('line');
  pen.fillRect(left, top + HEIGHT, width, 1);
  for (const part of [0, 0.5, 1])
    drawText(pen, axisFormats[plot.kind](plot.end * part), left - 8, top + HEIGHT * (1 - part), {
      fill: colour('text'),
      align: 'right',
      baseline: 'middle',
    });
}

// What the plot shows; where it has several curves, with a mark in the colour of each.
function drawTitle(pen, { title, curves }, top, { left, width }) {
  const look = { fill: colour('text'), size: 12.5, weight: 600 };
  let x = left;
  const write = (text, fill = look.fill) => {
    drawText(pen, text, x, top - 23, { ...look, fill });
    x += pen.measureText(text).width;
  };
  pen.save();
  pen.beginPath();
  pen.rect(left, top - GAP, width, GAP);
  pen.clip();
  write(curves.length > 1 ? `${title}: ` : title);
  if (curves.length > 1)
    for (const { name, shade } of curves) {
      write('■ ', colour(shade));
      write(`${name}   `);
    }
  pen.restore();
}

// Curves of a plot that stands on `base`; of one that is stacked each stands on those before it.
function drawCurves(pen, { curves, stack, end }, base, place, run) {
  const { bin_ps: bin } = run.history;
  const high = (value) => (value / end) * HEIGHT;
  const under = (k, i) => curves.slice(0, k).reduce((total, { list }) => total + list[i], 0);
  curves.forEach(({ list, shade }, k) => {
    const below = stack && k ? (i) => high(under(k, i)) : null;
    const bins = { bin, bins: list.length, until: run.time_ps, above: (i) => (below?.(i) ?? 0) + high(list[i]), below };
    pen.fillStyle = colour(shade);
    pen.globalAlpha = stack ? 0.75 : 0.28;
    fillBins(pen, bins, place, base);
    pen.globalAlpha = 1;
    pen.strokeStyle = colour(shade);
    pen.lineWidth = 1.2;
    strokeBins(pen, bins, place, base);
  });
}

// The plots, one below the other from `top` on. place: as fillBins takes it.
export function drawPlots(pen, plots, top, place, run) {
  plots.forEach((plot, i) => {
    const upper = top + GAP + i * EACH;
    drawAxes(pen, plot, upper, place);
    drawTitle(pen, plot, upper, place);
    drawCurves(pen, plot, upper + HEIGHT, place, run);
  });
}
