import assert from 'node:assert/strict';
import test from 'node:test';
import {cellText, digits, exponent, fullText, grouped, unitLabel, visible} from './number.mjs';

const seconds = {kind: 'unit', unit: 's', scale: 1e-9, exponent: -6, additive: true};

test('numbers have significant digits and not more than six behind the point', () => {
  assert.equal(digits(0, 4), '0');
  assert.equal(digits(1234567, 4), '1234567');
  assert.equal(digits(12.3456, 4), '12.35');
  assert.equal(digits(1000, 4), '1000');
  assert.equal(digits(-0.0123456, 3), '-0.0123');
  assert.equal(digits(0.00012345, 4), '1.23e-4');
});

test('counts are never shortened', () => {
  assert.equal(grouped(999), '999');
  assert.equal(grouped(1234567), '1\u202f234\u202f567');
});

test('prefixes go in steps of a thousand and end at both sides', () => {
  assert.deepEqual([0, 1, 999, 1000, 1e-3, 1e-30, 1e30].map(exponent), [0, 0, 0, 3, -3, -12, 18]);
});

test('a tooltip gives each number its own prefix, a column one for all', () => {
  assert.equal(fullText(seconds, 1.5e6), '1.500 ms');
  assert.equal(cellText(seconds, 1.5e6), '1500');
  assert.equal(cellText(seconds, 1.5e6, true), '1500');
  assert.equal(cellText(seconds, 12345, true), '12.3');
  assert.equal(unitLabel(seconds), 'us');
  assert.equal(unitLabel({kind: 'share', unit: '%'}), '%');
  assert.equal(fullText({kind: 'share'}, 0.1234), '12.3 %');
  assert.equal(fullText({kind: 'plain', unit: 'FLOP/B'}, 2), '2.000 FLOP/B');
});

test('what is not known is empty, and a sum of nothing is 0', () => {
  assert.equal(cellText({kind: 'plain'}, null), '');
  assert.equal(cellText({kind: 'plain', additive: false}, 0), '');
  assert.equal(cellText(seconds, 0), '0');
});

test('truth values are words', () => {
  assert.equal(cellText({kind: 'plain'}, true), 'yes');
  assert.equal(fullText({kind: 'plain'}, false), 'no');
});

test('phases are short on a phone', () => {
  assert.equal(cellText({kind: 'text'}, 'backward', true), 'bwd');
  assert.equal(cellText({kind: 'text'}, 'backward'), 'backward');
});

test('what cannot be seen is shown by its number', () => {
  assert.equal(visible('a\u202eb\u0000'), 'a<U+202E>b<U+0000>');
  assert.equal(visible('שכבה.0 é'), 'שכבה.0 é');
});
