import assert from 'node:assert/strict';
import test from 'node:test';
import {readTable} from './data.mjs';
import {createFilter, sharesBefore, sortedRows} from './filter.mjs';
import {layers, waits} from './sample.mjs';

const filterOf = (given) => createFilter(readTable(given));

test('rows are sorted by numbers and words, ties keep their order, nothing comes last', () => {
  const table = readTable(layers()), rows = (name, down) => sortedRows(table, table.byName[name], down);
  assert.deepEqual(rows('time_ns', true), [0, 1, 3, 2, 4]);
  assert.deepEqual(rows('phase', false), [3, 4, 0, 1, 2]);
  assert.deepEqual(rows('layer', false), [0, 4, 1, 2, 3]);
  assert.deepEqual(rows('oi', true), [3, 0, 2, 4, 1]);
  assert.deepEqual(sortedRows(table, undefined, true), [0, 1, 2, 3, 4]);
});

test('a share is that of longer rows of the same run', () => {
  const table = readTable(layers({groups: undefined, runs: ['A100', 'V100'], run_of: [0, 0, 1, 1, 1]}));
  const before = [...sharesBefore(table, () => true)].map((share) => +share.toFixed(9));
  assert.deepEqual(before, [0, 0.6, 0.3, 0, 0.5]);
});

test('groups stand for their members until they are open', () => {
  const filter = filterOf(layers());
  let arranged = filter.arrange();
  assert.deepEqual(arranged.order, [0, 3, 4]);
  assert.deepEqual([...arranged.marked], [1, 0, 0, 1, 1]);
  assert.deepEqual([arranged.shown, arranged.all], [3, 3]);
  assert.deepEqual(filter.leaves(arranged), [1, 2, 3, 4]);
  filter.state.open.add(0);
  arranged = filter.arrange();
  assert.deepEqual(arranged.order, [0, 1, 2, 3, 4]);
  assert.deepEqual([...arranged.marked], [0, 1, 1, 1, 1]);
  assert.equal(arranged.shown, 3);
  assert.deepEqual(filter.leaves(arranged), [1, 2, 3, 4]);
  filter.state.grouped = false;
  assert.deepEqual(filter.arrange().order, [1, 3, 2, 4]);
});

test('an open group is summed once', () => {
  const table = readTable(layers()), filter = createFilter(table), sum = () => filter.sum(table.byName.time_ns, filter.arrange());
  assert.equal(sum(), 1e7);
  filter.state.open.add(0);
  assert.equal(sum(), 1e7);
});

test('a search looks into groups, open or not, and is summed as it is shown', () => {
  const table = readTable(layers()), filter = createFilter(table);
  filter.state.search = ' A.CONV ';
  for (const open of [false, true]) {
    if (open) filter.state.open.add(0);
    const arranged = filter.arrange();
    assert.deepEqual(arranged.order, [1, 2]);
    assert.equal(filter.sum(table.byName.time_ns, arranged), 6e6);
  }
});

test('the slider keeps the longest rows that reach the share', () => {
  const filter = filterOf(layers());
  filter.state.share = 60;
  assert.deepEqual(filter.arrange().order, [0]);
  filter.state.share = 61;
  const arranged = filter.arrange();
  assert.deepEqual(arranged.order, [0, 3]);
  assert.equal(arranged.share.toFixed(9), '0.900000000');
});

test('a facet that is switched off takes its rows', () => {
  const filter = filterOf(layers());
  filter.state.facets.delete('forward');
  assert.deepEqual(filter.arrange().order, [3, 4]);
});

test('a table without shares, groups or facets is in its own order and can be searched', () => {
  const filter = filterOf(waits());
  assert.deepEqual(filter.arrange().order, [0, 1, 2]);
  filter.state.search = 'sync';
  assert.deepEqual(filter.arrange().order, [2]);
});

test('a new order is taken when the column or the direction changes', () => {
  const table = readTable(waits()), filter = createFilter(table);
  Object.assign(filter.state, {sort: table.columns[1], down: true});
  assert.deepEqual(filter.arrange().order, [1, 2, 0]);
  filter.state.down = false;
  assert.deepEqual(filter.arrange().order, [0, 1, 2]);
});
