// SPDX-License-Identifier: Apache-2.0
// Numbers for people, as the command line writes them: three significant digits, times in units of thousand from ps to s, bytes in
// units of 1024. A number that is not there is "-".

const TIMES = [
  ['ps', 1],
  ['ns', 1e3],
  ['us', 1e6],
  ['ms', 1e9],
  ['s', 1e12],
];
const SIZES = [
  ['B', 1],
  ['KiB', 2 ** 10],
  ['MiB', 2 ** 20],
  ['GiB', 2 ** 30],
  ['TiB', 2 ** 40],
];
const COUNTS = [
  ['', 1],
  ['k', 1e3],
  ['M', 1e6],
  ['G', 1e9],
  ['T', 1e12],
];

export const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

// Three significant digits without an exponent: 8.96, 57.9, 892.
export function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 99.95) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

// The largest unit that leaves at least 1 (0.9995 and more reads as 1).
function unitFor(value, units) {
  let best = units[0];
  for (const unit of units) if (Math.abs(value) >= 0.9995 * unit[1]) best = unit;
  return best;
}

function withUnit(value, units) {
  if (!isNumber(value)) return '-';
  const [name, size] = unitFor(value, units);
  const number = size === 1 ? String(Math.round(value)) : digits(value / size);
  return name ? `${number} ${name}` : number;
}

export const time = (ps) => (ps === 0 ? '0 s' : withUnit(ps, TIMES));
export const bytes = (value) => withUnit(value, SIZES);
export const count = (value) => (isNumber(value) && Math.abs(value) < 1e5 ? digitsOfCount(value) : withUnit(value, COUNTS));
export const share = (value) => (isNumber(value) ? `${(value * 100).toFixed(1)} %` : '-');
// What the ratio of `run` is to, as report_baseline in src/report/report.c has it: `copy`, else the first manager with a time; of several devices,
// those of its own. Undefined: none has a time.
export function baseline(runs, run) {
  const timed = runs.filter((other) => !other.error && other.time_ps > 0 && other.device === run.device);
  return timed.find(({ memory }) => /^copy(@\d+)?$/.test(memory)) ?? timed[0];
}

// Why the manager could not run the program, as report_reason in src/report/report.c has it: without its own name in front.
export const reason = ({ memory, error }) => (error.startsWith(`${memory}: `) ? error.slice(memory.length + 2) : error);

export const ratio = (value) => (isNumber(value) && value > 0 ? `${digits(value)}x` : '-');

function digitsOfCount(value) {
  return Number.isInteger(value) ? String(value) : digits(value);
}

// One unit for a whole axis: returns a formatter of its ticks and the unit's name.
export function axisOf(largest, kind) {
  const units = { time: TIMES, bytes: SIZES, count: COUNTS }[kind];
  const [name, size] = unitFor(largest, units);
  return { name, size, format: (value) => String(+(value / size).toPrecision(7)) };
}

// How a counter of this unit is written.
export function byUnit(unit) {
  return { ps: time, B: bytes }[unit] ?? count;
}
