import assert from 'node:assert/strict';
import test from 'node:test';
import {readTable} from './data.mjs';
import {layers, waits} from './sample.mjs';
import {columnOrder, columnWidth, rowsInView, shownText} from './table.mjs';

const names = (columns) => columns.map((column) => column.name);

test('rows that exist are those in view and a few more', () => {
  assert.deepEqual(rowsInView(0, 250, 1000), [0, 18]);
  assert.deepEqual(rowsInView(2500, 250, 1000), [96, 114]);
  assert.deepEqual(rowsInView(1e9, 250, 1000), [982, 1000]);
  assert.deepEqual(rowsInView(2500, 250, 3), [0, 3]);  // a filter left fewer rows than were scrolled over
  assert.deepEqual(rowsInView(0, 250, 0), [0, 0]);
});

test('on a phone the spare column waits behind what must be in view', () => {
  const table = readTable(layers({spare: 'time_share', in_view: 'oi'}));
  assert.deepEqual(names(columnOrder(table, false)).slice(0, 5), ['layer', 'phase', 'time_share', 'time_ns', 'oi']);
  assert.deepEqual(names(columnOrder(table, true)).slice(0, 5), ['layer', 'phase', 'time_ns', 'oi', 'time_share']);
});

test('a hidden column is not shown, unless it names the rows', () => {
  assert.ok(!names(columnOrder(readTable(layers({hidden: 'group'})), false)).includes('group'));
  assert.equal(columnOrder(readTable(layers({hidden: 'layer'})), false)[0].name, 'layer');
});

test('a column is as wide as its values and head need, within bounds', () => {
  const table = readTable(waits());
  table.columns[0].words = ['x'.repeat(200)];
  assert.deepEqual(columnWidth(table, table.columns[0], false), {want: 201, width: 25});
  assert.deepEqual(columnWidth(table, table.columns[0], true), {want: 200, width: 12});
  const {width} = columnWidth(table, table.columns[1], false);
  assert.ok(width > 'count'.length && width < 10, width);
});

test('the first column shows the name of the row', () => {
  const table = readTable(layers());
  assert.equal(shownText(table, table.columns[0], 0), 'Conv2d x2');
  assert.equal(shownText(table, table.columns[0], 4), '(no layer)');
  assert.equal(shownText(table, table.columns[1], 4), 'backward');
});
