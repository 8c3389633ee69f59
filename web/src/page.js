// SPDX-License-Identifier: Apache-2.0
// Making elements. Texts become text nodes: nothing that comes from a run is ever read as markup.

// element('p', {class: 'note', title: 'x'}, 'text', child, ...): attributes that are null or false are left out.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);

// What a pointer shows over a mark: a title and rows of [name, value] or [name, value, colour].
export function tip(title, rows, note) {
  return element(
    'div',
    { class: 'tip' },
    element('strong', {}, title),
    element(
      'table',
      {},
      rows.map(([name, value, colour]) => {
        const mark = element('i');
        if (colour) mark.style.background = colour;
        return element('tr', {}, element('td', {}, colour ? mark : null, name), element('td', {}, value));
      }),
    ),
    note ? element('p', {}, note) : null,
  );
}

// Whether an event of a chart's pointer comes while a button is held: what moves under the pointer then needs no tip.
export const isDrag = ({ event }) => Boolean(event?.buttons);

// Puts what is shown of the mark under the pointer beside it, within the figure's width.
export function placeBeside(hover, { offsetX, offsetY }, holder) {
  const left = offsetX > holder.clientWidth / 2 ? offsetX - hover.offsetWidth - 14 : offsetX + 14;
  hover.style.left = `${Math.max(0, Math.min(left, holder.clientWidth - hover.offsetWidth))}px`;
  hover.style.top = `${offsetY + 14}px`;
}
