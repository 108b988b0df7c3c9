import assert from 'node:assert/strict';
import test from 'node:test';
import {countText, facetOrder} from './controls.mjs';
import {readTable} from './data.mjs';
import {layers, waits} from './sample.mjs';

test('what is left is said in rows, and in time where that is known', () => {
  assert.equal(countText(readTable(waits()), {shown: 2, all: 3, share: 0}), '2 of 3 rows');
  assert.equal(countText(readTable(layers()), {shown: 1, all: 5000, share: 0.6}), '1 of 5\u202f000 rows, 60.0 % of GPU time');
});

test('check boxes are in the order of a step', () => {
  const given = layers();
  given.columns[1].words = ['', 'other', 'backward', 'forward'];
  assert.deepEqual(facetOrder(readTable(given)), ['forward', 'backward', '', 'other']);
});
