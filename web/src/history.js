// SPDX-License-Identifier: Apache-2.0
// The sections of one manager over time: the timeline and the map of pages, which show the same part of the run, and the buttons that
// choose it. Without a history in the file they say how to get one.
import { makeHeatMap, VIEWS } from './heatmap.js';
import { byId, element } from './page.js';
import { whenChanged } from './theme.js';
import { makeTimeline } from './timeline.js';
import { makeZoom } from './zoom.js';

/* runs: all of them, for what is said of a launch. all: the zoom of all managers, which is kept from one to the other; null: there is none. Returns {zoom, show(run)}. */
export function makeHistory(all, runs) {
  const zoom = makeZoom();
  const timeline = makeTimeline(byId('timeline'), byId('timeline-notes'), zoom, runs);
  const map = makeHeatMap(byId('heatmap'), byId('map-key'), byId('map-notes'), zoom);
  let run = null;
  let wanted = VIEWS[0].key;

  for (const [id, factor] of [
    ['zoom-in', 2],
    ['zoom-out', 0.5],
  ])
    byId(id).addEventListener('click', () => zoom.scale(factor));
  byId('zoom-whole').addEventListener('click', () => zoom.set(0, zoom.whole));
  whenChanged(map.redrawKey);

  function showMap() {
    const views = map.views(run);
    byId('pages').hidden = !views.length;
    if (!views.length) return;
    const view = views.find(({ key }) => key === wanted) ?? views[0];
    byId('map-choices').replaceChildren(
      ...views.map(({ key, name }) =>
        element(
          'button',
          {
            type: 'button',
            'data-view': key,
            'aria-pressed': String(key === view.key),
            onclick: () => {
              wanted = key;
              showMap();
            },
          },
          name,
        ),
      ),
    );
    byId('pages-explain').replaceChildren(`${view.explain} `, element('span', { class: 'look' }, view.look));
    map.show(run, view);
  }

  return {
    zoom,
    show(next) {
      run = next;
      const there = Boolean(run.history?.bins) && run.time_ps > 0;
      for (const id of ['timeline', 'zoom-choices', 'timeline-notes']) byId(id).hidden = !there;
      byId('no-history').hidden = there;
      byId('pages').hidden = !there;
      if (!there) return;
      zoom.reset(run.time_ps, all);
      timeline.show(run);
      showMap();
    },
  };
}
