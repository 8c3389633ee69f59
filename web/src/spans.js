// SPDX-License-Identifier: Apache-2.0
// Marks from a begin to an end on an axis of time, as many as a run has: only what can be told apart is drawn, and the mark under the pointer is
// searched for. So the cost of a redraw depends on the figure's width more than on the number of launches.

const SMALL = 3; // pixels: what is narrower merges with a neighbour that it touches

// Index of the first of the rising numbers that is above `value`.
export function firstAbove(numbers, value) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/* Columns of times, begin rising; item: the number of each in the list that it is of. latest[i]: the latest end of 0 to i, which rises too, so that
 * the first mark that reaches beyond a time can be searched for although a long mark may end after those behind it. */
export function makeSpans(list, isOf = null) {
  const spans = { begin: [], end: [], item: [], latest: [] };
  for (let i = 0; list && i < list.count; i++) if (!isOf || isOf(i)) addSpan(spans, list.begin_ps[i], list.end_ps[i], i);
  return spans;
}

export function addSpan(spans, begin, end, item) {
  const before = spans.latest[spans.latest.length - 1] ?? 0;
  spans.begin.push(begin);
  spans.end.push(end);
  spans.item.push(item);
  spans.latest.push(Math.max(before, end));
}

/* The rectangles [x, width, item] of those that meet start to end, where a picosecond is `scale` pixels from `left` on. Each is at least a pixel
 * wide; those that touch and are small, or overlap, are one, whose item is -1. All that begin within half a pixel are looked at as one, so that
 * there are at most two steps for each pixel, however many marks it has. */
export function rectangles(spans, start, end, left, scale) {
  const found = [];
  const together = 0.5 / scale;
  for (let i = firstAbove(spans.latest, start), next; i < spans.begin.length && spans.begin[i] < end; i = next) {
    next = spans.begin[i + 1] < spans.begin[i] + together ? firstAbove(spans.begin, spans.begin[i] + together) : i + 1;
    const until = next > i + 1 ? spans.latest[next - 1] : spans.end[i];
    if (until <= start && spans.begin[i] < start) continue;
    const x = left + (Math.max(start, spans.begin[i]) - start) * scale;
    const width = Math.max(1, (Math.min(end, until) - Math.max(start, spans.begin[i])) * scale);
    const last = found[found.length - 1];
    const room = last ? x - (last[0] + last[1]) : Infinity;
    if (room < -0.5 || (room < 0.5 && (width < SMALL || last[1] < SMALL))) {
      last[1] = Math.max(last[1], x + width - last[0]);
      last[2] = -1;
    } else {
      if (room < 0.5) last[1] -= 0.5; // a line between neighbours
      found.push([x, width, next > i + 1 ? -1 : spans.item[i]]);
    }
  }
  return found;
}

// The item of the last mark that is at this time or within `slack` of it; -1: there is none.
export function itemAt(spans, at, slack = 0) {
  for (let i = firstAbove(spans.begin, at + slack) - 1; i >= 0 && spans.latest[i] >= at - slack; i--)
    if (spans.end[i] >= at - slack) return spans.item[i];
  return -1;
}
