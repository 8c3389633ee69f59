// SPDX-License-Identifier: Apache-2.0
// The page of one run: fills page.html's sections from the run's JSON (docs/json.md). Sections of one manager follow the selector.
import { showAdvice } from './advice.js';
import { drawBars, SCALES } from './bars.js';
import { baseline, bytes, byUnit, count, isNumber, ratio, reason, share, time } from './format.js';
import { makeHistory } from './history.js';
import { makeLines } from './lines.js';
import { byId, element } from './page.js';
import { makeRoofline } from './roofline.js';
import { makeSearch } from './search.js';
import { hasHistory, makeSideBySide } from './sidebyside.js';
import { makeStacks } from './stacks.js';
import { makeTable } from './table.js';
import { showTiers } from './tiers.js';
import { whenChanged } from './theme.js';
import { link, makeZoom } from './zoom.js';

const paragraph = (...content) => element('p', {}, ...content);
const code = (text) => element('code', {}, text);
const strong = (text) => element('strong', {}, text);

const isIdeal = ({ memory }) => /^ideal\b/.test(memory);
const hasTime = (run) => !run.error && run.time_ps > 0;

/* ---- In short ---- */

function listItem(...content) {
  return element('li', {}, ...content);
}

// What a reader would say about the run after a look at its bars.
function verdict(runs) {
  const base = runs.find(({ memory }) => memory === 'copy');
  const others = runs.filter((run) => hasTime(run) && run !== base && !isIdeal(run)).sort((a, b) => a.time_ps - b.time_ps);
  const ideal = runs.find((run) => isIdeal(run) && hasTime(run));
  const lines = [];
  if (base && hasTime(base)) {
    lines.push(
      listItem(
        'With its own copies (',
        code(base.memory),
        ') the program takes ',
        strong(time(base.time_ps)),
        '; during ',
        share(base.kernel_ps / base.time_ps),
        ' of it a kernel runs.',
      ),
    );
  }
  const [best] = others;
  const worst = others[others.length - 1];
  if (best) {
    lines.push(
      listItem(
        `The fastest ${base && hasTime(base) ? 'other ' : ''}manager is `,
        code(best.memory),
        ': ',
        strong(time(best.time_ps)),
        best.ratio > 0 ? ` (${ratio(best.ratio)})` : '',
        '.',
      ),
    );
  }
  if (worst && worst !== best) {
    lines.push(
      listItem(
        'The slowest is ',
        code(worst.memory),
        ': ',
        strong(time(worst.time_ps)),
        worst.ratio > 0 ? ` (${ratio(worst.ratio)})` : '',
        worst.faults ? `, with ${count(worst.faults)} far-faults` : '',
        worst.evicted_bytes ? ` and ${bytes(worst.evicted_bytes)} evicted` : '',
        '.',
      ),
    );
  }
  if (ideal)
    lines.push(
      listItem(
        'Nothing can be faster than ',
        code(ideal.memory),
        ', where all data is on the GPU from the start: ',
        strong(time(ideal.time_ps)),
        '.',
      ),
    );
  for (const run of runs.filter(({ error }) => error)) lines.push(listItem(code(run.memory), ' could not run the program: ', reason(run)));
  return lines;
}

function tile(name, value, note) {
  return element(
    'div',
    { class: 'tile' },
    element('span', { class: 'tile-name' }, name),
    element('span', { class: 'tile-value' }, value),
    element('span', { class: 'tile-note' }, note),
  );
}

function tiles(runs) {
  const any = runs.find(hasTime);
  if (!any) return [];
  const launches = any.launches ?? 0;
  return [
    tile('machine', any.machine, 'the simulated GPU'),
    tile('footprint', bytes(Math.max(...runs.map(({ footprint_bytes: b }) => b ?? 0))), 'most memory allocated at a time'),
    tile('kernels', String(any.kernels?.length ?? 0), `${count(launches)} ${launches === 1 ? 'launch' : 'launches'}`),
    tile('allocations', String(any.allocations?.length ?? 0), 'made by the program'),
  ];
}

function warnings(run) {
  const found = [];
  if (run.running) found.push('Written while the program ran: the numbers are as far as each simulation was, and the figures over time come at its end.');
  else if (run.complete === false)
    found.push('The program did not end by itself, or its simulations did not: the numbers cover what was done until then.');
  if (!run.runs.length) found.push('No memory manager was simulated (--memory none): there are no times to show.');
  return found.map((text) => element('p', { class: 'warning' }, text));
}

/* ---- Tables ---- */

// Columns of every counter that some row has, but those that are there already; hidden until chosen.
function counterColumns(counters, rows, except) {
  return counters
    .filter(([name]) => !except.includes(name) && rows.some((row) => row[name]))
    .map(([name, unit, meaning]) => ({
      key: name,
      title: name,
      help: meaning,
      hidden: true,
      value: (row) => row[name] ?? 0,
      format: byUnit(unit),
    }));
}

// The named counters as columns with titles of their own.
function pick(counters, list) {
  return list.map(([name, title]) => {
    const [, unit, meaning] = counters.find(([known]) => known === name) ?? [name, '', ''];
    return { key: name, title, help: meaning, value: (row) => row[name] ?? 0, format: byUnit(unit) };
  });
}

function managerColumns(counters, runs) {
  const result = (value) => (row) => (row.error ? null : value(row));
  const some = pick(counters, [
    ['time_ps', 'time'],
    ['kernel_ps', 'kernels'],
    ['transfer_ps', 'transfers'],
    ['faults', 'far-faults'],
    ['h2d_bytes', 'to GPU'],
    ['d2h_bytes', 'to CPU'],
    ['evicted_bytes', 'evicted'],
  ]);
  const derived = [
    {
      key: 'ratio',
      title: 'ratio',
      help: `time over that of ${(baseline(runs, runs.find(hasTime) ?? {})?.memory ?? 'copy').replace(/@\d+$/, '')}`,
      value: (row) => row.ratio || null,
      format: ratio,
    },
    {
      key: 'link_utilisation',
      title: 'link used',
      help: "the busier direction's share of the time",
      value: (row) => row.link_utilisation,
      format: share,
    },
    {
      key: 'tlb_miss_rate',
      title: 'TLB miss',
      help: "share of the translations that the SM's TLB did not hold",
      value: (row) => row.tlb_miss_rate,
      format: share,
    },
  ];
  some.splice(1, 0, derived[0]);
  const columns = [
    ...some,
    ...derived.slice(1),
    ...counterColumns(
      counters,
      runs,
      some.map(({ key }) => key),
    ),
  ];
  for (const column of columns) column.value = result(column.value);
  return [{ key: 'memory', title: 'memory', help: 'the memory manager', text: true, value: ({ memory }) => memory }, ...columns];
}

function kernelColumns(counters, rows) {
  const some = pick(counters, [
    ['launches', 'launches'],
    ['time_ps', 'time'],
    ['faults', 'far-faults'],
    ['fault_wait_ps', 'waiting for pages'],
    ['prefetched_bytes', 'prefetched'],
    ['refaults', 'refaults'],
    ['sectors', 'sectors'],
    ['dram_read_bytes', 'DRAM read'],
  ]);
  return [
    { key: 'name', title: 'kernel', text: true, value: ({ name }) => name },
    ...(rows.some(({ range }) => range)
      ? [
          {
            key: 'range',
            title: 'range',
            help: "of the program's (NVTX), in which it was launched",
            text: true,
            value: ({ range }) => range ?? '',
          },
        ]
      : []),
    ...(rows.some(({ site }) => site)
      ? [{ key: 'site', title: 'launched at', help: 'where in the program', text: true, value: ({ site }) => site ?? '' }]
      : []),
    ...some,
    ...counterColumns(
      counters,
      rows,
      some.map(({ key }) => key),
    ),
  ];
}

const kindOf = ({ managed, pinned }) => (managed ? 'managed' : pinned ? 'pinned' : 'device');

function allocationColumns(counters, rows) {
  const some = pick(counters, [
    ['accesses', 'accesses'],
    ['faults', 'far-faults'],
    ['refaults', 'refaults'],
    ['h2d_bytes', 'to GPU'],
    ['d2h_bytes', 'to CPU'],
    ['evicted_bytes', 'evicted'],
    ['prefetched_unused_bytes', 'prefetched in vain'],
  ]);
  return [
    { key: 'name', title: 'allocation', text: true, value: ({ name }) => name },
    {
      key: 'kind',
      title: 'kind',
      help: 'device: cudaMalloc; managed: cudaMallocManaged; pinned: memory of the CPU',
      text: true,
      value: kindOf,
    },
    { key: 'bytes', title: 'size', help: 'bytes allocated', value: (row) => row.bytes, format: bytes },
    ...some.slice(0, 5),
    {
      key: 'travels',
      title: 'moved / size',
      help: "bytes moved in both directions over the allocation's size",
      value: (row) => (row.bytes ? ((row.h2d_bytes ?? 0) + (row.d2h_bytes ?? 0)) / row.bytes : null),
      format: ratio0,
    },
    ...some.slice(5),
    ...counterColumns(
      counters,
      rows,
      some.map(({ key }) => key),
    ),
  ];
}

const ratio0 = (value) => (isNumber(value) ? `${value.toFixed(2)}x` : '-');

function counterTable(counters, runs) {
  const columns = [
    { key: 'name', title: 'counter', text: true, value: ([name]) => name },
    ...runs.map((run, i) => ({
      key: `run${i}`,
      title: run.memory,
      help: `under ${run.memory}`,
      value: ([name]) => (run.error ? null : (run[name] ?? null)),
    })),
    { key: 'meaning', title: 'meaning', text: true, value: ([, , meaning]) => meaning },
  ];
  makeTable(byId('counter-table'), columns, {
    rows: counters,
    filter: 'filter: tlb, dram, bytes ...',
    cell: ([, unit], value) => byUnit(unit)(value),
  });
}

/* ---- This run ---- */

function fact(name, ...value) {
  return [element('dt', {}, name), element('dd', {}, ...value)];
}

function facts(data) {
  const { run } = data;
  const { host } = run;
  const machines = [...new Set(run.runs.map(({ machine }) => machine))];
  return [
    fact('program', code(run.command ?? 'unknown')),
    machines.length ? fact('machine', code(machines.join(', ')), ' (the values and where they are from: machines/NAME.yaml)') : [],
    run.runs.length ? fact('managers', code(run.runs.map(({ memory }) => memory).join(','))) : [],
    fact('farfault', `version ${run.version ?? 'unknown'}, from the file `, code(data.file)),
    host?.wall_s
      ? fact(
          'took',
          `${host.wall_s.toFixed(2)} s of real time and ${host.cpu_s.toFixed(2)} s of the CPU's, ${bytes(host.peak_rss_bytes)} of memory, to execute ${count(host.thread_instructions)} thread instructions and simulate ` +
            `${run.runs.length} ${run.runs.length === 1 ? 'manager' : 'managers'}; nothing else on this page depends on the computer that it ran on`,
        )
      : [],
  ].flat();
}

/* ---- The page ---- */

export function showRun(data) {
  const { run, counters } = data;
  const runs = run.runs ?? [];
  byId('kind').textContent = 'report of a run';
  byId('title').textContent = run.command ?? data.file;
  document.title = `${run.command ?? data.file} - farfault`;
  const machines = [...new Set(runs.map(({ machine }) => machine))].join(', ');
  const devices = new Set(runs.map(({ device }) => device ?? 0)).size;
  const managers = runs.length / devices; /* each is simulated on each device */
  byId('subtitle').textContent = runs.length
    ? `on ${devices > 1 ? `${devices} simulated GPUs` : 'the simulated GPU'} ${machines}, under ${managers} memory ${managers === 1 ? 'manager' : 'managers'}`
    : 'without a memory manager';
  byId('verdict').replaceChildren(...verdict(runs));
  byId('tiles').replaceChildren(...tiles(runs));
  byId('warnings').replaceChildren(...warnings({ ...run, runs }));
  byId('notes').replaceChildren(...(run.notes ?? []).map((note) => element('p', { class: 'note' }, note)));
  byId('facts').replaceChildren(...facts({ ...data, run: { ...run, runs } }));
  showAdvice(data.advice, { ...run, runs });
  byId('run-page').hidden = false;
  if (!runs.length) {
    for (const id of [
      'managers',
      'side',
      'stacks',
      'tiers',
      'selector',
      'history',
      'pages',
      'kernels',
      'roofline',
      'lines',
      'allocations',
      'numbers',
    ])
      byId(id).hidden = true;
    return;
  }
  showManagers(runs, data);
}

// The sections of several managers, and those of the chosen one.
function showManagers(runs, { counters, tier_counters: tierCounters, sources }) {
  let chosen = startingManager(runs);
  const bars = drawBars(
    byId('bars'),
    runs,
    (i) => choose(i, true),
    (i) => i === chosen,
  );
  const managers = makeTable(byId('manager-table'), managerColumns(counters, runs), {
    rows: runs,
    filter: runs.length > 8 ? 'filter: replay, faults>100 ...' : null,
    onRow: (row) => choose(runs.indexOf(row), true),
    isMarked: (row) => row === runs[chosen],
  });
  const kernels = makeTable(
    byId('kernel-table'),
    kernelColumns(
      counters,
      runs.flatMap((run) => run.kernels ?? []),
    ),
    { sort: { key: 'time_ps', down: true }, filter: 'filter: part of a name, faults>0 ...', empty: 'No kernel was launched.' },
  );
  const allocations = makeTable(
    byId('allocation-table'),
    allocationColumns(
      counters,
      runs.flatMap((run) => run.allocations ?? []),
    ),
    { sort: { key: 'bytes', down: true }, filter: 'filter: managed, refaults>0 ...', empty: 'Nothing was allocated.' },
  );
  counterTable(counters, runs);
  const stacks = makeStacks(runs);
  showTiers(runs, tierCounters ?? []);
  const zoom = runs.filter(hasHistory).length > 1 ? makeZoom() : null; // of all managers
  const history = makeHistory(zoom, runs);
  const side = zoom && makeSide();
  const roofline = makeRoofline();
  const lines = makeLines(sources);
  const search = makeSearch(byId('search'), byId('search-found'), searchGroups, launchOf);
  const select = byId('manager');
  select.replaceChildren(...runs.map(({ memory }, i) => element('option', { value: i }, memory)));
  select.addEventListener('change', () => choose(Number(select.value), false));
  setScale('time');

  function makeSide() {
    byId('side').hidden = false;
    link(zoom, history.zoom);
    for (const [id, action] of [
      ['side-whole', () => zoom.set(0, zoom.whole)],
      ['side-in', () => zoom.scale(2)],
      ['side-out', () => zoom.scale(0.5)],
    ])
      byId(id).addEventListener('click', action);
    const figure = makeSideBySide(runs, {
      holder: byId('side-figure'),
      key: byId('side-key'),
      notes: byId('side-notes'),
      zoom,
      onChoose: (i) => choose(i),
      isChosen: (i) => i === chosen,
    });
    whenChanged(figure.redrawKey);
    return figure;
  }

  // What the search finds, and where it leads.
  function searchGroups() {
    const run = runs[chosen];
    const show = (id) => byId(id).scrollIntoView({ block: 'start' });
    const inTable = (id, table) => (row) => {
      table.reveal(row);
      show(id);
    };
    return [
      {
        title: 'Kernels',
        rows: run.kernels ?? [],
        text: ({ name, site, range }) => [name, site, range].filter(Boolean).join('  '),
        note: (row) => `${count(row.launches)} launches, ${time(row.time_ps ?? 0)}`,
        go: inTable('kernels', kernels),
      },
      {
        title: 'Allocations',
        rows: run.allocations ?? [],
        text: ({ name }) => name,
        note: (row) => `${kindOf(row)}, ${bytes(row.bytes)}`,
        go: inTable('allocations', allocations),
      },
      {
        title: 'Lines',
        rows: lines.rows,
        text: lines.textOf,
        note: (row) => `${count(row.faults ?? 0)} far-faults`,
        go: inTable('lines', lines),
      },
    ];
  }

  // A number is that of a launch too.
  function launchOf(typed) {
    const number = /^(?:launch )?#?(\d+)$/.exec(typed)?.[1];
    const run = runs[chosen];
    const list = run.history?.kernels;
    if (!number || !list || Number(number) < 1 || Number(number) > run.launches) return null;
    const i = list.launch.indexOf(Number(number) - 1);
    if (i < 0) return { text: `launch ${number}`, note: `not among the ${count(list.count)} launches that this file has with their times` };
    const room = (list.end_ps[i] - list.begin_ps[i]) * 0.05;
    return {
      text: `launch ${number}: ${run.kernels?.[list.kernel[i]]?.name ?? ''}`,
      note: `at ${time(list.begin_ps[i])}, for ${time(list.end_ps[i] - list.begin_ps[i])}`,
      go: () => {
        byId('history').scrollIntoView({ block: 'start' });
        history.zoom.set(list.begin_ps[i] - room, list.end_ps[i] + room);
      },
    };
  }

  function setScale(chosenScale) {
    bars.setScale(chosenScale);
    byId('bar-choices').replaceChildren(
      ...bars.scales.map((key) =>
        element(
          'button',
          { type: 'button', 'data-scale': key, 'aria-pressed': String(key === chosenScale), onclick: () => setScale(key) },
          SCALES[key],
        ),
      ),
    );
  }

  function show() {
    const run = runs[chosen];
    select.value = String(chosen);
    for (const place of document.querySelectorAll('.of')) place.replaceChildren('under ', code(run.memory));
    byId('manager-facts').textContent = run.error
      ? `could not run the program: ${reason(run)}`
      : `${time(run.time_ps)}, ${run.ratio > 0 ? `${ratio(run.ratio)} ${baseline(runs, run).memory}, ` : ''}${count(run.faults)} far-faults, ${bytes(run.h2d_bytes)} to the GPU, ${bytes(run.d2h_bytes)} back`;
    stacks.show(run);
    history.show(run);
    kernels.show(run.kernels ?? []);
    allocations.show(run.allocations ?? []);
    roofline.show(run);
    lines.show(run);
    search.reset();
  }

  function choose(i) {
    chosen = i;
    bars.redraw();
    side?.redraw();
    managers.refresh();
    show();
  }
  show();
}

// The first manager that pages, as its figures tell most; else the first that could run the program, else the first.
function startingManager(runs) {
  const paging = runs.findIndex((run) => hasTime(run) && run.faults > 0);
  return paging >= 0 ? paging : Math.max(0, runs.findIndex(hasTime));
}
