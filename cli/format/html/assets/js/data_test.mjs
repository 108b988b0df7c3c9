import assert from 'node:assert/strict';
import test from 'node:test';
import {deflateSync} from 'node:zlib';
import {csvText, facetOf, inflate, readTable, titleOf} from './data.mjs';
import {layers, waits} from './sample.mjs';

test('a long table is compressed', async () => {
  const text = JSON.stringify(waits()) + '×'.repeat(100000);
  assert.equal(await inflate(deflateSync(text).toString('base64')), text);
});

test('what a table does not say has a usual value', () => {
  const table = readTable(waits());
  assert.equal(table.share, undefined);
  assert.equal(table.facet, undefined);
  assert.equal(table.members.size, 0);
  assert.deepEqual(table.memberOf, [-1, -1, -1]);
  assert.deepEqual(table.runs, ['']);
  assert.equal(table.name(2), 'synchronize');
  assert.equal(titleOf(table, 2), 'synchronize');
  assert.equal(facetOf(table, 2), '');
  assert.equal(table.value(table.columns[2], 0), true);
});

test('rows are called by the first of their names, groups by what they hold', () => {
  const table = readTable(layers());
  assert.equal(table.name(0), 'Conv2d x2');
  assert.equal(table.name(1), 'a.conv1');
  assert.equal(table.name(4), '(no layer)');
  assert.equal(titleOf(table, 3), 'b.norm, backward');
  assert.deepEqual([...table.members], [[0, [1, 2]]]);
});

test('with several models a row is called by its model, too', () => {
  const given = layers({prefix: 'model'});
  given.columns.push({name: 'model', title: 'Model', kind: 'text', words: ['Net'], values: [0, 0, 0, 0, 0]});
  assert.equal(titleOf(readTable(given), 1), 'Net a.conv1, forward');
  assert.equal(titleOf(readTable(given), 4), '(no layer), backward');
});

test('all numbers of a column have the prefix of its largest', () => {
  assert.equal(readTable(layers()).byName.time_ns.exponent, -3);
});

test('columns that were left out are missed by nothing', () => {
  const table = readTable({...layers(), columns: [], rows: 0, groups: undefined});
  assert.equal(table.share, undefined);
  assert.equal(table.count, 0);
});

test('CSV has names, exact values and quotes where they are needed', () => {
  assert.equal(csvText(readTable(waits()), [1, 2]), 'what,count,blocking\n"a, ""b""",9,false\nsynchronize,9,\n');
  assert.match(csvText(readTable(layers()), [1]), /\na\.conv1,forward,0\.4,4000000,,,1\n$/);
});
