// SPDX-License-Identifier: Apache-2.0
// The points of a sweep as the page sees them: which columns are its parameters, which are numbers, and how their values are ordered
// and written. A point is an object with the columns of the database's view `results` (docs/results-db.md).
import { byUnit, isNumber, ratio, share, time } from './format.js';

const FIXED = ['point', 'state', 'error', 'version', 'trace', 'trace_checksum', 'machine', 'machine_hash', 'memory'];
const DERIVED = [
  [
    'ratio',
    'time over that of copy on the same machine, with the same parameters other than the size of GPU memory and those of paging',
    ratio,
  ],
  ['time_us', 'simulated time from the first operation to the end of the last', (value) => time(value * 1e6)],
  ['kernel_us', 'time during which at least one kernel ran', (value) => time(value * 1e6)],
  ['transfer_us', 'time during which the link carried data', (value) => time(value * 1e6)],
  ['link_utilisation', "the busier direction's share of the time", share],
  ['tlb_miss_rate', "share of the translations that the SM's TLB did not hold", share],
];

const sizes = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

// A parameter's value as a number, if it is one in any of its writings (0.5, "64K", "75%"); else null.
export function asNumber(value) {
  if (isNumber(value)) return value;
  const parts = /^(-?[0-9.]+(?:e[+-]?\d+)?)\s*(?:([kmgt])(?:i?b)?|%)?$/i.exec(String(value ?? ''));
  return parts && parts[1] !== '.' ? Number(parts[1]) * (sizes[parts[2]?.toLowerCase()] ?? 1) : null;
}

// The values that a column has among the points, without null: by size if all are numbers, else as they first come.
export function valuesOf(points, key) {
  const values = [...new Set(points.map((point) => point[key]).filter((value) => value !== null && value !== undefined && value !== ''))];
  return values.every((value) => asNumber(value) !== null) ? values.sort((a, b) => asNumber(a) - asNumber(b)) : values;
}

/* counters: [name, unit, meaning]. Returns {dimensions: [{key, name, values}] that the study varies or names, measures: [{key, help, format}]
 * that some point has a number for}. */
export function describe(points, counters) {
  const known = new Set([...FIXED, ...DERIVED.map(([key]) => key), ...counters.map(([key]) => key)]);
  const columns = Object.keys(points[0] ?? {});
  const parameters = columns.filter((key) => !known.has(key) && points.some((point) => point[key] !== null));
  const dimensions = ['trace', 'machine', 'memory', ...parameters]
    .filter((key) => columns.includes(key))
    .map((key) => ({ key, name: key, values: valuesOf(points, key), parameter: parameters.includes(key) }));
  const some = (key) => points.some((point) => isNumber(point[key]) && point[key] !== 0);
  const measures = [
    ...DERIVED.map(([key, help, format]) => ({ key, help, format })),
    ...counters.map(([key, unit, help]) => ({ key, help, format: byUnit(unit) })),
  ].filter(({ key }) => some(key));
  return { dimensions, measures };
}

export const isDone = (point) => !point.error && (point.state === undefined || point.state === 'done');

// The geometric mean of numbers above 0, the arithmetic one if there are others; null of none.
export function mean(values) {
  if (!values.length) return null;
  if (values.every((value) => value > 0)) return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export const valueText = (value) => (value === null || value === undefined ? 'not given' : isNumber(value) ? String(value) : value);
