// SPDX-License-Identifier: Apache-2.0
// A canvas upon a chart's own, for the marks of a figure over time. The chart library builds, compares and copies a shape per mark whenever
// the zoom changes; here they go straight onto the canvas, at most once per frame. What is drawn depends on the width in pixels, not on how
// much the run has: spans.js merges marks, binsInSight() goes through the bins in sight.
import { element } from './page.js';
import { FONT } from './theme.js';

/* draw(pen, width): in CSS pixels. Returns {draw(): now, drawSoon(): with the next frame}. The pointer is not for the sheet: the chart below has it. */
export function makeSheet(holder, height, draw) {
  const canvas = element('canvas', { class: 'sheet' });
  const pen = canvas.getContext('2d');
  let waits = 0;
  holder.append(canvas);

  function now() {
    cancelAnimationFrame(waits);
    waits = 0;
    const dots = window.devicePixelRatio || 1;
    const width = holder.clientWidth;
    if (!width) return; // it is not shown
    const [wide, high] = [Math.round(width * dots), Math.round(height(width) * dots)];
    if (canvas.width !== wide || canvas.height !== high) {
      [canvas.width, canvas.height] = [wide, high];
      [canvas.style.width, canvas.style.height] = [`${width}px`, `${height(width)}px`];
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, wide, high);
    pen.scale(dots, dots);
    draw(pen, width);
  }

  return {
    draw: now,
    drawSoon: () => {
      waits ||= requestAnimationFrame(now);
    },
  };
}

// The rectangles of spans.js, `height` pixels high.
export function drawStrips(pen, list, y, height) {
  for (const [x, width] of list) pen.fillRect(x, y, width, height);
}

// Their outlines, as one path.
export function outlineStrips(pen, list, y, height, stroke) {
  pen.beginPath();
  for (const [x, width] of list) pen.rect(x, y, width, height);
  pen.strokeStyle = stroke;
  pen.lineWidth = 1;
  pen.stroke();
}

/* What of a list of bins is in sight: each of `bins` is `bin` long, only what is between the times `from` and `until` is drawn. place: {left, width}
 * in pixels of the times from `start` to `end`. Returns {first, last, x(time)}; null: nothing. */
function binsInSight({ bin, bins, from = 0, until }, { left, width, start, end }) {
  const [begin, stop] = [Math.max(start, from), Math.min(end, until)];
  const first = Math.max(0, Math.floor(begin / bin));
  const last = Math.min(bins, Math.ceil(stop / bin)) - 1;
  if (!(stop > begin) || last < first) return null;
  const scale = width / (end - start);
  return { first, last, x: (time) => left + (Math.min(stop, Math.max(begin, time)) - start) * scale };
}

// Fills the area of the bins in sight, as one path; above(i), below(i): the heights in pixels over `base` between which bin i is filled.
export function fillBins(pen, list, place, base) {
  const sight = binsInSight(list, place);
  if (!sight) return;
  const { bin, above, below } = list;
  const { first, last, x } = sight;
  pen.beginPath();
  pen.moveTo(x(first * bin), base - (below?.(first) ?? 0));
  for (let i = first; i <= last; i++) {
    const y = base - above(i);
    pen.lineTo(x(i * bin), y);
    pen.lineTo(x((i + 1) * bin), y);
  }
  for (let i = last; below && i >= first; i--) {
    const y = base - below(i);
    pen.lineTo(x((i + 1) * bin), y);
    pen.lineTo(x(i * bin), y);
  }
  if (!below) pen.lineTo(x((last + 1) * bin), base);
  pen.fill();
}

// Draws the upper side of it.
export function strokeBins(pen, list, place, base) {
  const sight = binsInSight(list, place);
  if (!sight) return;
  const { bin, above } = list;
  const { first, last, x } = sight;
  pen.beginPath();
  for (let i = first; i <= last; i++) {
    const y = base - above(i);
    if (i === first) pen.moveTo(x(i * bin), y);
    else pen.lineTo(x(i * bin), y);
    pen.lineTo(x((i + 1) * bin), y);
  }
  pen.stroke();
}

// A line of text from its upper edge (or `baseline`) on.
export function drawText(pen, text, x, y, { fill, align = 'left', baseline = 'top', size = 12, weight = 400 }) {
  pen.font = `${weight} ${size}px ${FONT}`;
  pen.fillStyle = fill;
  pen.textAlign = align;
  pen.textBaseline = baseline;
  pen.fillText(text, x, y);
}
