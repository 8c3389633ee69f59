// SPDX-License-Identifier: Apache-2.0
// Tiers below GPU memory: a row for each tier of each simulation that has some, the host's memory first.
import { byUnit, bytes } from './format.js';
import { byId } from './page.js';
import { makeTable } from './table.js';

const TITLES = { peak_bytes: 'peak', read_bytes: 'read', written_bytes: 'written', wait_ps: 'waited' };

// `counters`: [name, unit, meaning] of what is counted of a tier.
function tierColumns(counters) {
  return [
    { key: 'memory', title: 'memory', help: 'the memory manager', text: true, value: ({ memory }) => memory },
    { key: 'name', title: 'tier', text: true, value: ({ name }) => name },
    { key: 'capacity_bytes', title: 'holds', help: 'its capacity', value: (row) => row.capacity_bytes, format: bytes },
    ...counters.map(([name, unit, help]) => ({
      key: name,
      title: TITLES[name] ?? name.replaceAll('_', ' '),
      help,
      value: (row) => row[name] ?? 0,
      format: byUnit(unit),
    })),
  ];
}

// Fills the section, or hides it.
export function showTiers(runs, counters) {
  const rows = runs.filter(({ error }) => !error).flatMap(({ memory, tiers }) => (tiers ?? []).map((tier) => ({ ...tier, memory })));
  byId('tiers').hidden = !rows.length;
  if (rows.length) makeTable(byId('tier-table'), tierColumns(counters), { rows, filter: rows.length > 8 ? 'filter: uvm, nvme, waits>0 ...' : null });
}
