// SPDX-License-Identifier: Apache-2.0
// The axes of charts with a row of bars for each name: a value below, from 0, and the names at the left, the first one at the top.
import { axisLook, cutMiddle } from './charts.js';

/* names: one each row; width: of the figure, room: of the names, in pixels; title: below the value's axis, whose numbers format(value) writes.
 * more: {max: the axis' end; names: what else the axis of names has; nameColour(name, i)}. Returns {xAxis, yAxis}. */
export function rowAxes(names, { width, room, title, format }, more = {}) {
  const look = axisLook();
  const named = { ...look.axisLabel, fontSize: 13, formatter: (name) => cutMiddle(name, room - 12, 13) };
  return {
    xAxis: {
      ...look,
      type: 'value',
      max: more.max,
      name: title,
      nameLocation: 'middle',
      nameGap: 28,
      splitNumber: width < 600 ? 3 : 6,
      axisLabel: { ...look.axisLabel, formatter: format },
    },
    yAxis: {
      ...look,
      type: 'category',
      inverse: true,
      data: names,
      axisLabel: more.nameColour ? { ...named, color: more.nameColour } : named,
      ...more.names,
    },
  };
}
