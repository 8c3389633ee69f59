// SPDX-License-Identifier: Apache-2.0
// The chart library as far as it is used, and what all charts share: a chart is made from a function that returns its options, so that
// it can be drawn again when the colours or the width change.
import { BarChart, CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import { DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TitleComponent, TooltipComponent } from 'echarts/components';
import * as echarts from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import { makeSheet } from './sheet.js';
import { colour, FONT, whenChanged } from './theme.js';

echarts.use([
  BarChart,
  CustomChart,
  LineChart,
  ScatterChart,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TitleComponent,
  TooltipComponent,
  CanvasRenderer,
]);

const drawn = new Set();

// Draws into `holder` what options(width) returns; `height(width)` in pixels. paint(pen, width): draws upon it without the chart library
// (sheet.js), which takes less of the time of a frame. Returns {chart, redraw, repaint}: redraw() after the data changed, repaint() if only what
// is painted did.
export function makeChart(holder, options, height, paint = null) {
  const chart = echarts.init(holder, null, { renderer: 'canvas', height: height(holder.clientWidth) });
  const sheet = paint && makeSheet(holder, height, paint);
  const redraw = () => {
    const width = holder.clientWidth;
    if (!width) return;
    chart.resize({ width, height: height(width) });
    chart.setOption({ ...shared(), ...options(width) }, { notMerge: true });
    sheet?.draw();
  };
  const made = { chart, redraw, repaint: () => sheet?.drawSoon() };
  drawn.add(made);
  let width = holder.clientWidth;
  new ResizeObserver(() => {
    if (holder.clientWidth === width) return;
    width = holder.clientWidth;
    redraw();
  }).observe(holder);
  redraw();
  return made;
}

whenChanged(() => drawn.forEach(({ redraw }) => redraw()));

function shared() {
  return {
    animation: false,
    backgroundColor: 'transparent',
    textStyle: { fontFamily: FONT, color: colour('text') },
    aria: { enabled: false },
  };
}

export const tooltip = (extra) => ({
  confine: true,
  backgroundColor: colour('card'),
  borderColor: colour('line'),
  textStyle: { color: colour('text'), fontSize: 13 },
  extraCssText: 'box-shadow: 0 4px 16px rgba(0,0,0,.25); max-width: 420px; white-space: normal;',
  ...extra,
});

export const legend = (extra) => ({
  textStyle: { color: colour('text'), fontSize: 13 },
  inactiveColor: colour('faint'),
  itemWidth: 14,
  itemHeight: 14,
  icon: 'roundRect',
  ...extra,
});

export const axisLook = () => ({
  axisLine: { lineStyle: { color: colour('line') } },
  axisTick: { lineStyle: { color: colour('line') } },
  axisLabel: { color: colour('text'), fontSize: 12 },
  nameTextStyle: { color: colour('faint-text'), fontSize: 12 },
  splitLine: { lineStyle: { color: colour('grid') } },
});

const pen = document.createElement('canvas').getContext('2d'); // to measure with

// Room for the longest of these names at 13 px, at most a part of the width.
export function nameRoom(names, width, most = 0.3) {
  pen.font = `13px ${FONT}`;
  const wanted = Math.max(...names.map((name) => pen.measureText(name).width), 30) + 14;
  return Math.min(wanted, Math.max(80, width * most));
}

// The text as far as `room` pixels go, its middle left out: names often differ only at their ends.
export function cutMiddle(text, room, size = 12) {
  pen.font = `${size}px ${FONT}`;
  if (pen.measureText(text).width <= room) return text;
  for (let kept = text.length - 1; kept > 3; kept--) {
    const head = Math.ceil(kept / 2);
    const cut = `${text.slice(0, head)}…${text.slice(text.length - (kept - head))}`;
    if (pen.measureText(cut).width <= room) return cut;
  }
  return `${text.slice(0, 2)}…`;
}

// The text as far as `room` pixels go, its end left out.
export function cutEnd(text, room, size = 12) {
  pen.font = `${size}px ${FONT}`;
  if (pen.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle;
  }
  return `${text.slice(0, low)}…`;
}

export { echarts };
