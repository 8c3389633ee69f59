// SPDX-License-Identifier: Apache-2.0
// Lines of the kernels' code that cause far-faults and traffic, of a run with --lines (docs/json.md, by_line), beside the text of the source
// where that could be read when the page was made.
import { bytes, count, share } from './format.js';
import { byId, element } from './page.js';
import { makeTable } from './table.js';

const AROUND = 2;
const fileName = (path) => path.slice(path.lastIndexOf('/') + 1);
const placeOf = ({ file, line, ptx, pc }) => (file ? `${fileName(file)}:${line}` : ptx ? `PTX ${ptx}` : `instruction ${pc}`);

// The lines around one of a source, that one marked.
function excerpt(texts, { file, line }) {
  const rows = [];
  for (let at = Math.max(1, line - AROUND); at <= line + AROUND; at++) {
    const text = texts[at];
    if (text === undefined) continue;
    const row = `${String(at).padStart(5)}  ${text}\n`;
    rows.push(at === line ? element('strong', {}, row) : row);
  }
  return [element('p', { class: 'detail' }, file), element('pre', {}, ...rows)];
}

/* sources: {file: {number of line: text}}. Returns {show(run), rows, textOf(row),
 * reveal(row)}; the section is hidden where a run has no lines. */
export function makeLines(sources) {
  let faults = 0;
  const textOf = ({ file, line }) => sources?.[file]?.[line]?.trim() ?? '';
  const number = (key, title, format, help) => ({ key, title, help, value: (row) => row[key] ?? 0, format });
  const columns = [
    { key: 'place', title: 'line', help: 'of the source, else of the PTX', text: true, value: placeOf },
    { key: 'source', title: 'source', help: 'as the file was when this page was made', text: true, value: textOf },
    { key: 'kernel', title: 'kernel', text: true, value: ({ name }) => name },
    { key: 'ptx', title: 'PTX line', value: ({ ptx }) => ptx ?? null, format: String },
    { key: 'instruction', title: 'instruction', text: true, value: ({ instruction }) => instruction ?? '' },
    number('faults', 'far-faults', count),
    {
      key: 'share',
      title: 'share',
      help: "of the run's far-faults",
      value: (row) => (faults ? (row.faults ?? 0) / faults : null),
      format: share,
    },
    number('h2d_bytes', 'to GPU', bytes, 'what its far-faults moved'),
    number('remote_bytes', 'remote', bytes, 'reached over the link'),
    number('sectors', 'sectors', count, '32 bytes each'),
    number('dram_read_bytes', 'DRAM read', bytes),
    number('dram_write_bytes', 'DRAM written', bytes),
  ];
  const shown = byId('line-source');
  const table = makeTable(byId('line-table'), columns, {
    sort: { key: 'faults', down: true },
    filter: 'filter: part of a line, faults>0 ...',
    empty: 'No kernel has accessed global memory.',
    onRow: showSource,
  });
  let rows = [];
  function showSource(row) {
    shown.replaceChildren(...(sources?.[row.file] ? excerpt(sources[row.file], row) : []));
  }
  return {
    get rows() {
      return rows;
    },
    textOf: (row) => `${placeOf(row)}  ${textOf(row) || (row.instruction ?? '')}`,
    reveal(row) {
      table.reveal(row);
      showSource(row);
    },
    show(run) {
      byId('lines').hidden = !run.by_line;
      shown.replaceChildren();
      faults = run.faults;
      rows = (run.by_line ?? []).map((line) => ({ ...line, name: run.kernels[line.kernel].name }));
      table.show(rows);
    },
  };
}
