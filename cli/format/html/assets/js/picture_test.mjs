import assert from 'node:assert/strict';
import test from 'node:test';
import {markPlace, nearestRow} from './picture.mjs';

const marks = {rows: [7, 2, 5], x: [1000, 1000, 3000], y: [500, 520, 500], r: [200, 50], ty: [100, null, 200]};
const marked = new Uint8Array(10).fill(1);

test('the last radius goes for all that follow, a target is above its mark', () => {
  assert.deepEqual(markPlace(marks, 0), {x: 100, y: 50, r: 20, target: {x: 100, y: 10}});
  assert.deepEqual(markPlace(marks, 1), {x: 100, y: 52, r: 5, target: null});
  assert.deepEqual(markPlace(marks, 2), {x: 300, y: 50, r: 5, target: {x: 300, y: 20}});
  assert.deepEqual(markPlace({...marks, tx: [1, null, 30]}, 2).target, {x: 3, y: 20});
  assert.equal(markPlace({...marks, ty: undefined}, 0).target, null);
});

test('of marks that overlap the smallest answers', () => {
  assert.equal(nearestRow(marks, marked, 100, 52, 9), 2);
  assert.equal(nearestRow(marks, marked, 100, 35, 9), 7);
});

test('a mark answers within reach of its edge', () => {
  assert.equal(nearestRow(marks, marked, 313, 50, 9), 5);
  assert.equal(nearestRow(marks, marked, 315, 50, 9), -1);
});

test('a mark that is filtered does not answer', () => {
  const some = marked.slice();
  some[2] = 0;
  assert.equal(nearestRow(marks, some, 100, 52, 9), 7);
});
