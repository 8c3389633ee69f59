// SPDX-License-Identifier: Apache-2.0
// The part of the run's time that the figures over time show: one for all of them, from `start` to `end` in picoseconds.

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
    // A run of `time`; all of it is shown.
    reset(time) {
      [whole, start, end] = [Math.max(1, time), 0, Math.max(1, time)];
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

// A chart's dataZoom over these axes, and the chart's side of keeping it at `zoom`.
export function zoomOptions(zoom, axes, slider) {
  const range = { xAxisIndex: axes, startValue: zoom.start, endValue: zoom.end, filterMode: 'none' };
  return [
    { type: 'inside', ...range, zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: 'shift', preventDefaultMouseMove: false },
    ...(slider ? [{ type: 'slider', ...range, ...slider }] : []),
  ];
}

export function followZoom(made, zoom) {
  made.chart.on('datazoom', () => {
    const [{ startValue, endValue }] = made.chart.getOption().dataZoom;
    zoom.set(startValue, endValue, made);
  });
  zoom.whenChanged((by) => {
    if (by !== made) made.chart.dispatchAction({ type: 'dataZoom', dataZoomIndex: 0, startValue: zoom.start, endValue: zoom.end });
  });
}
