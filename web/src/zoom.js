// SPDX-License-Identifier: Apache-2.0
// The part of a run's time that figures over time show, from `start` to `end` in picoseconds: one for all figures of a manager, and one for the
// figure of all managers, whose whole is the longest run's time.
import { colour } from './theme.js';

export function makeZoom() {
  const listeners = [];
  let [whole, start, end] = [1, 0, 1];
  const tell = (by) => listeners.forEach((listener) => listener(by));

  return {
    get whole() {
      return whole;
    },
    get start() {
      return start;
    },
    get end() {
      return end;
    },
    whenChanged: (listener) => listeners.push(listener),
    // A run of `time`; all of it is shown, or as much as it has of what `like` shows.
    reset(time, like) {
      whole = Math.max(1, time);
      [start, end] = like && like.start < whole ? [like.start, Math.min(whole, like.end)] : [0, whole];
    },
    // by: who changes it, so that it need not be told.
    set(from, to, by) {
      const [a, b] = [Math.max(0, from), Math.min(whole, to)];
      if (!(b > a) || (a === start && b === end)) return;
      [start, end] = [a, b];
      tell(by);
    },
    // Shows 1/factor of what is shown now, around its middle.
    scale(factor) {
      const middle = (start + end) / 2;
      const half = Math.min(whole, (end - start) / factor) / 2;
      const shift = Math.max(0, half - middle) - Math.max(0, middle + half - whole);
      this.set(middle - half + shift, middle + half + shift);
    },
  };
}

// Two zooms show the same time, as far as both have it.
export function link(one, other) {
  let busy = false;
  for (const [from, to] of [
    [one, other],
    [other, one],
  ])
    from.whenChanged(() => {
      if (busy) return;
      busy = true;
      to.set(from.start, from.end);
      busy = false;
    });
}

// The bar below a chart, between these distances from its sides.
const slider = ({ left, right }) => ({
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
});

// A chart's dataZoom over these axes, and the chart's side of keeping it at `zoom`. sides: {left, right} of the bar below it; null: it has none.
export function zoomOptions(zoom, axes, sides) {
  const range = { xAxisIndex: axes, startValue: zoom.start, endValue: zoom.end, filterMode: 'none' };
  return [
    { type: 'inside', ...range, zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: 'shift', preventDefaultMouseMove: false },
    ...(sides ? [{ type: 'slider', ...range, ...slider(sides) }] : []),
  ];
}

export function followZoom(made, zoom) {
  made.chart.on('datazoom', (event) => {
    const { start, end, startValue, endValue } = event.batch?.[0] ?? event; // in percent, if a reader did it
    if (startValue === undefined) zoom.set((start / 100) * zoom.whole, (end / 100) * zoom.whole, made);
    else zoom.set(startValue, endValue, made);
  });
  const { chart } = made;
  const show = () => chart.dispatchAction({ type: 'dataZoom', dataZoomIndex: 0, startValue: zoom.start, endValue: zoom.end });
  let [inSight, late] = [true, false]; // out of sight nothing is drawn: it would only make the others slower
  const catchUp = () => {
    if (late) show();
    if (late) made.repaint();
    late = false;
  };
  new IntersectionObserver((entries) => {
    inSight = entries[entries.length - 1].isIntersecting;
    if (inSight) catchUp();
  }).observe(chart.getDom());
  window.addEventListener('beforeprint', catchUp);
  zoom.whenChanged((by) => {
    late = by !== made;
    if (inSight) catchUp();
    if (!late) made.repaint();
  });
}
