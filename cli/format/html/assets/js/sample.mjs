// Tables for the tests, as the page's JSON gives them.

const column = (name, kind, values, more = {}) => ({name, title: name, kind, values, ...more});

// Five rows of two phases; the first is the group of the two behind it.
export const layers = (more = {}) => ({
  id: 'layers', heading: 'Layers', rows: 5,
  columns: [
    column('layer', 'text', [0, 1, 2, 3, 0], {words: ['', 'a.conv1', 'a.conv2', 'b.norm']}),
    column('phase', 'text', [0, 0, 0, 1, 1], {words: ['forward', 'backward']}),
    column('time_share', 'share', [0.6, 0.4, 0.2, 0.3, 0.1], {additive: true, scale: 100}),
    column('time_ns', 'unit', [6e6, 4e6, 2e6, 3e6, 1e6], {unit: 's', scale: 1e-9, additive: true, totals: [1e7]}),
    column('oi', 'plain', [2, null, 0.5, 8, 0], {unit: 'FLOP/B'}),
    column('group', 'text', [0, 1, 1, 1, 1], {words: ['Conv2d', '']}),
    column('layers', 'count', [2, 1, 1, 1, 1]),
  ],
  names: ['layer', 'missing'], nameless: '(no layer)', share: {column: 'time_share', of: 'GPU time', opening: 100},
  facet: {column: 'phase', icons: {forward: 'F', backward: 'B', '': 'X'}, radius: 5},
  groups: {of: [-1, 0, 0, -1, -1], name: 'group', size: 'layers', title: 'Alike as one'}, ...more});

// Rows without anything that links them to one another or to pictures.
export const waits = () => ({
  id: 'waits', heading: 'Waits', rows: 3,
  columns: [column('what', 'text', [0, 1, 2], {words: ['item()', 'a, "b"', 'synchronize']}), column('count', 'count', [7, 9, 9]),
            column('blocking', 'plain', [true, false, null])]});
