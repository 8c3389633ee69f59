// SPDX-License-Identifier: Apache-2.0
// A number of the points over one of their parameters, a line per memory manager (or machine, or trace). Each point is a dot; where several
// points share a place, the line goes through their mean, and has a gap where some of the points that other places have are missing: means of
// different programs are no curve. What has no value of the parameter is a dashed level across.
import { axisLook, legend, makeChart, tooltip } from './charts.js';
import { tip } from './page.js';
import { mean, valueText, valuesOf } from './points.js';
import { colour } from './theme.js';

const SHADES = ['s1', 's2', 's3', 's4', 's5', 's6', 's7', 's8'];
const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond', 'pin', 'arrow'];
const SPREAD = 0.5; // of the room between two values, over which the series' dots are spread

// The series of a chart: {name, shade, symbol, means: [value or null by x], gaps: x values some of whose points are missing, dots: [[x, value, point]],
// level: its mean without x, or null}. others: the parameters that tell apart what shares a place, of
// which those count that all of a series' points have.
function seriesOf(points, { x, y, by, names, others }, xs) {
  return names
    .map((name, i) => {
      const own = points.filter((point) => point[by] === name && Number.isFinite(point[y]));
      const at = xs.map((value) => own.filter((point) => point[x] === value));
      const without = own.filter((point) => !xs.includes(point[x]));
      const given = others.filter((key) => own.every((point) => (point[key] ?? null) !== null));
      const kindsOf = (list) => new Set(list.map((point) => JSON.stringify(given.map((key) => point[key])))).size;
      const all = kindsOf(at.flat());
      const whole = at.map((list) => kindsOf(list) === all);
      return {
        name: valueText(name),
        shade: SHADES[i % SHADES.length],
        symbol: SYMBOLS[Math.floor(i / SHADES.length) % SYMBOLS.length],
        means: at.map((list, i) => (whole[i] ? mean(list.map((point) => point[y])) : null)),
        gaps: xs.filter((_, i) => at[i].length && !whole[i]),
        dots: at.flatMap((list, column) => list.map((point) => [column, point[y], point])),
        level: xs.length && without.length ? mean(without.map((point) => point[y])) : null,
        without: without.length,
      };
    })
    .filter(({ dots, level }) => dots.length || level !== null);
}

/* holder; pick(): {points, names: all values of `by`, each with its colour, x, y, by, others, logarithmic, measure: {key, format}, describePoint(point): rows for the tip}.
 * Returns {redraw}. */
export function makeSweepChart(holder, pick) {
  let made = null;
  let chosen = null;
  let [xs, series] = [[], []];

  function dotTip({ seriesIndex, data, seriesName }) {
    const one = series[Math.floor(seriesIndex / 2)];
    if (!data?.point)
      return tip(seriesName, [[`mean ${chosen.measure.key}`, chosen.measure.format(data?.value?.[1] ?? one.level), colour(one.shade)]]);
    return tip(seriesName, [
      [chosen.measure.key, chosen.measure.format(data.point[chosen.y]), colour(one.shade)],
      ...chosen.describePoint(data.point),
    ]);
  }

  function options(width) {
    const look = axisLook();
    const { logarithmic, measure } = chosen;
    const usable = (value) => (value !== null && (!logarithmic || value > 0) ? value : null);
    const spread = series.length > 1 ? SPREAD / (series.length - 1) : 0;
    return {
      tooltip: tooltip({ trigger: 'item', formatter: dotTip }),
      legend: legend({
        type: 'scroll',
        top: 0,
        left: 0,
        right: 0,
        icon: undefined,
        data: series.map(({ name, symbol }) => ({ name, icon: symbol })),
        pageIconColor: colour('accent'),
        pageTextStyle: { color: colour('text') },
      }),
      grid: { left: 8, right: 24, top: 44, bottom: 8, outerBoundsMode: 'same', outerBoundsContain: 'all' },
      xAxis: [
        {
          ...look,
          type: 'category',
          data: xs.map(valueText),
          name: chosen.x,
          nameLocation: 'middle',
          nameGap: 30,
          splitLine: { show: false },
          axisLabel: { ...look.axisLabel, hideOverlap: false, rotate: xs.length * 60 > width ? 45 : 0 },
        },
        { type: 'value', min: -0.5, max: Math.max(0.5, xs.length - 0.5), show: false },
      ],
      yAxis: {
        ...look,
        type: logarithmic ? 'log' : 'value',
        name: measure.key,
        nameLocation: 'end',
        nameTextStyle: { ...look.nameTextStyle, align: 'left' },
        axisLine: { ...look.axisLine, show: true, onZero: false },
        axisLabel: { ...look.axisLabel, formatter: (value) => (value === 0 ? '0' : measure.format(value)) },
      },
      series: series.flatMap((one, i) => {
        const itemStyle = { color: colour(one.shade) };
        const aside = series.length > 1 && xs.length ? -SPREAD / 2 + i * spread : 0;
        const level = usable(one.level);
        const line =
          level === null
            ? one.means.map((value, x) => ({ value: [x, usable(value) ?? '-'] }))
            : [{ value: [-0.5, level] }, { value: [xs.length - 0.5, level] }];
        return [
          {
            type: 'line',
            name: one.name,
            xAxisIndex: 1,
            data: line,
            showSymbol: level === null,
            symbol: one.symbol,
            symbolSize: 7,
            connectNulls: !one.gaps.length,
            itemStyle,
            lineStyle: { width: 2, color: itemStyle.color, type: level === null ? 'solid' : 'dashed' },
            z: 2,
          },
          {
            type: 'scatter',
            name: one.name,
            xAxisIndex: 1,
            symbol: one.symbol,
            symbolSize: 9,
            z: 3,
            itemStyle: { color: itemStyle.color, opacity: 0.55, borderColor: colour('card'), borderWidth: 0.5 },
            data: one.dots
              .filter(([, value]) => usable(value) !== null)
              .map(([x, value, point]) => ({ value: [x + (one.dots.length > xs.length ? aside : 0), value], point })),
          },
        ];
      }),
    };
  }

  return {
    redraw() {
      chosen = pick();
      xs = valuesOf(chosen.points, chosen.x);
      series = seriesOf(chosen.points, chosen, xs);
      holder.dataset.marks = String(series.reduce((total, { dots }) => total + dots.length, 0));
      holder.dataset.series = series.map(({ name }) => name).join('|');
      holder.dataset.values = xs.map(valueText).join('|');
      const gaps = series.flatMap((one) => one.gaps.map((value) => `${one.name} at ${valueText(value)}`));
      holder.dataset.gaps = gaps.join('|');
      if (made) made.redraw();
      else made = makeChart(holder, options, (width) => (width < 600 ? 360 : 440));
      return {
        shared: series.some((one) => one.dots.length > xs.length),
        levels: series.filter(({ level }) => level !== null).map(({ name }) => name),
        gaps,
      };
    },
  };
}
