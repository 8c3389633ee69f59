// SPDX-License-Identifier: Apache-2.0
// A table that sorts and filters: a click on a column's title sorts by it, again the other way round; the field above keeps the rows in
// which every word occurs, or for which a comparison (faults>100) holds. Long tables show their first rows until asked for all.
import { element } from './page.js';
import { isNumber } from './format.js';

const FIRST_ROWS = 100;
const COMPARE = { '>': (a, b) => a > b, '<': (a, b) => a < b, '=': (a, b) => a === b, '>=': (a, b) => a >= b, '<=': (a, b) => a <= b };

const isAbsent = (value) => value === null || value === undefined || value === '';

function compare(a, b) {
  if (isAbsent(a) || isAbsent(b)) return isAbsent(a) - isAbsent(b); // what is not there comes last, either way
  return isNumber(a) && isNumber(b) ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
}

// One word of the filter as a test of a row. "name>5" compares if there is such a column; everything else is searched for.
function wordTest(word, columns) {
  const parts = /^([\w.+ -]+?)(>=|<=|=|>|<)(.+)$/.exec(word);
  const column = parts && columns.find(({ key, title }) => [key, title].some((name) => name.toLowerCase() === parts[1]));
  if (column) {
    const wanted = Number(parts[3]);
    const number = isNumber(wanted);
    return (row) => {
      const value = column.value(row);
      return number && isNumber(value) ? COMPARE[parts[2]](value, wanted) : parts[2] === '=' && String(value).toLowerCase() === parts[3];
    };
  }
  return (row) =>
    columns.some(({ value, format }) => {
      const found = value(row);
      return !isAbsent(found) && `${found} ${format && isNumber(found) ? format(found) : ''}`.toLowerCase().includes(word);
    });
}

/* columns: {key, title, help, value(row), format(value), text: whether it is text, hidden: not shown until chosen}.
 * options: rows, sort: {key, down}, filter: an example for the field, or null for no field; onRow(row); isMarked(row); toneOf(row): a class of the row, or
 * null; empty: a sentence;
 * cell(row, value): how numbers are written, where it depends on the row.
 * Returns {show(rows), refresh(), reveal(row)}: the last one puts a row of them first, marked, whatever the filter says. */
export function makeTable(holder, columns, options) {
  const state = {
    rows: options.rows ?? [],
    key: options.sort?.key ?? null,
    down: options.sort?.down ?? false,
    words: [],
    all: false,
    found: null,
  };
  const visible = new Set(columns.filter(({ hidden }) => !hidden).map(({ key }) => key));
  const head = element('thead');
  const body = element('tbody');
  const status = element('p', { class: 'table-status', role: 'status' });
  let field = null;
  const tools = element('div', { class: 'table-tools' });
  if (options.filter !== null) tools.append(filterField());
  if (columns.some(({ hidden }) => hidden)) tools.append(columnChooser());
  holder.replaceChildren(
    tools,
    element('div', { class: 'table-scroll', tabindex: 0 }, element('table', { class: 'data' }, head, body)),
    status,
  );

  function filterField() {
    field = element('input', { type: 'search', placeholder: options.filter ?? 'filter', 'aria-label': 'keep rows with these words' });
    field.addEventListener('input', () => {
      state.words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      state.found = null;
      fill();
    });
    return field;
  }

  function columnChooser() {
    const boxes = columns
      .filter((column, i) => i > 0)
      .map((column) => {
        const box = element('input', { type: 'checkbox', checked: visible.has(column.key) });
        box.addEventListener('change', () => {
          if (box.checked) visible.add(column.key);
          else visible.delete(column.key);
          refresh();
        });
        return element('label', { title: column.help }, box, column.title);
      });
    return element('details', { class: 'chooser' }, element('summary', {}, 'Columns'), element('div', {}, boxes));
  }

  const shown = () => columns.filter(({ key }) => visible.has(key));

  function titleCell(column) {
    const sorted = state.key === column.key;
    const button = element(
      'button',
      { type: 'button', title: column.help },
      column.title,
      element('span', { 'aria-hidden': 'true' }, sorted ? (state.down ? ' ▼' : ' ▲') : ''),
    );
    button.addEventListener('click', () => {
      state.down = sorted ? !state.down : !column.text;
      state.key = column.key;
      refresh();
      head.querySelector(`[data-key="${CSS.escape(column.key)}"] button`)?.focus();
    });
    return element(
      'th',
      {
        scope: 'col',
        'data-key': column.key,
        class: column.text ? 'text' : null,
        'aria-sort': sorted ? (state.down ? 'descending' : 'ascending') : null,
      },
      button,
    );
  }

  function kept() {
    const tests = state.words.map((word) => wordTest(word, columns));
    const rows = state.rows.filter((row) => tests.every((test) => test(row)));
    const column = columns.find(({ key }) => key === state.key);
    if (!column) return rows;
    const sign = state.down ? -1 : 1;
    return rows.sort((a, b) => {
      const [x, y] = [column.value(a), column.value(b)];
      return isAbsent(x) || isAbsent(y) ? compare(x, y) : sign * compare(x, y);
    });
  }

  function rowElement(row, cells) {
    const made = element(
      'tr',
      { class: row === state.found || options.isMarked?.(row) ? 'marked' : (options.toneOf?.(row) ?? null) },
      cells.map((column, i) => {
        const value = column.value(row);
        const text = isAbsent(value)
          ? '-'
          : isNumber(value)
            ? (column.format ?? (options.cell ? (n) => options.cell(row, n) : String))(value)
            : String(value);
        const exact = isNumber(value) && text !== String(value) ? String(value) : column.text ? text : null;
        return element(i ? 'td' : 'th', { scope: i ? null : 'row', class: column.text ? 'text' : null, title: exact }, text);
      }),
    );
    if (options.onRow) {
      made.classList.add('choice');
      made.addEventListener('click', () => options.onRow(row));
    }
    return made;
  }

  function fill() {
    const sorted = kept();
    const rows = state.found ? [state.found, ...sorted.filter((row) => row !== state.found)] : sorted;
    const cells = shown();
    const some = state.all ? rows : rows.slice(0, FIRST_ROWS);
    body.replaceChildren(...some.map((row) => rowElement(row, cells)));
    if (!state.rows.length) status.replaceChildren(options.empty ?? 'There is nothing to show.');
    else if (rows.length > some.length) {
      const more = element(
        'button',
        {
          type: 'button',
          onclick: () => {
            state.all = true;
            fill();
          },
        },
        `show all ${rows.length}`,
      );
      status.replaceChildren(`The first ${some.length} of ${rows.length} rows. `, more);
    } else status.replaceChildren(rows.length === state.rows.length ? '' : `${rows.length} of ${state.rows.length} rows`);
  }

  function refresh() {
    head.replaceChildren(element('tr', {}, shown().map(titleCell)));
    fill();
  }
  refresh();
  return {
    show(rows) {
      state.rows = rows;
      state.all = false;
      state.found = null;
      fill();
    },
    refresh,
    reveal(row) {
      state.words = [];
      if (field) field.value = '';
      state.found = row;
      fill();
      holder.querySelector('.table-scroll').scrollTop = 0;
    },
  };
}
