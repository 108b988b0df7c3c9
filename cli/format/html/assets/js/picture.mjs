// The pictures of a table's rows: a mark is found, ringed, hidden and shown by its row. Work a frame is bounded: a filter
// touches only the marks whose state changes, and marks that the document lacks are drawn when they are first shown.
import {facetOf} from './data.mjs';
import {addShape} from './dom.mjs';

const REACH = 9;  // pixels on the screen from the pointer to the edge of a mark that answers
const TENTH = 10;  // places are in tenths of a pixel

// Where mark k is, in pixels of the picture, and where its target is if it has one. The last radius goes for all that
// follow; a target without an x of its own is right above or below its mark.
export const markPlace = (marks, k) => {
  const tx = (marks.tx || marks.x)[k], ty = marks.ty ? marks.ty[k] : null;
  return {x: marks.x[k] / TENTH, y: marks.y[k] / TENTH, r: (marks.r[k] ?? marks.r.at(-1)) / TENTH,
          target: tx !== null && ty !== null ? {x: tx / TENTH, y: ty / TENTH} : null};
};

// The row whose mark is at (x, y), the smallest where several overlap, or the nearest within `reach`; -1 where there is
// none. Only rows that are `marked` have marks. No object is made for a mark: there can be fifty thousand.
export const nearestRow = (marks, marked, x, y, reach) => {
  const {rows, x: xs, y: ys, r: radii} = marks, last = radii.at(-1);
  let best = -1, least = reach;
  for (let k = 0; k < rows.length; k++) {
    if (!marked[rows[k]]) continue;
    const r = (radii[k] ?? last) / TENTH, distance = Math.hypot(xs[k] / TENTH - x, ys[k] / TENTH - y) - r;
    const score = distance <= 0 ? -1e6 + r * 100 + distance : distance;
    if (score < least) {
      least = score;
      best = rows[k];
    }
  }
  return best;
};

// Rings are in a picture of their own over the other one, or all marks would be painted again with each of them.
const overlay = (svg) => {
  const layer = svg.cloneNode(false);
  for (const name of ['id', 'role', 'aria-labelledby']) layer.removeAttribute(name);
  layer.classList.add('over');
  layer.ariaHidden = 'true';
  svg.after(layer);
  return layer;
};

// The element says what it is by a label: a browser would show its title as a tooltip over ours.
const label = (svg) => {
  const title = svg.querySelector('title');
  svg.setAttribute('aria-label', (title ? title.textContent + '. ' : '') + 'Arrow keys go through the points.');
  if (title) title.remove();
  svg.removeAttribute('aria-labelledby');
  svg.tabIndex = 0;
};

const createPicture = (table, given) => {
  const svg = document.getElementById(given.id), {marks, kind} = given;
  const group = svg.querySelector('.marks');
  const elements = [], at = new Int32Array(table.count).fill(-1);
  marks.rows.forEach((row, k) => { at[row] = k; });
  for (const mark of svg.querySelectorAll('.m')) elements[mark.dataset.i] = mark;
  const layer = overlay(svg);
  label(svg);
  const draw = (i) => {
    const {x, y, r} = markPlace(marks, at[i]), icons = table.icons;
    const mark = addShape(group, 'path', {class: marks.names[marks.css[at[i]]], d: icons[facetOf(table, i)] || icons[''],
      transform: `translate(${x} ${y}) scale(${r / table.iconRadius})`, 'vector-effect': 'non-scaling-stroke'});
    mark.dataset.i = i;
    return mark;
  };
  const ring = (i, css) => {
    if (i < 0 || at[i] < 0) return;
    const {x, y, r, target} = markPlace(marks, at[i]);
    if (target) addShape(layer, 'line', {class: 'focus line', x1: x, y1: y, x2: target.x, y2: target.y});
    addShape(layer, 'circle', {class: css, cx: x, cy: y, r: r * 1.15 + 3});
  };
  return {
    svg, kind, narrow: given.narrow || false, rows: marks.rows,
    show(marked) {
      for (const i of marks.rows) {
        if (!elements[i]) {
          if (!marked[i]) continue;
          elements[i] = draw(i);
        }
        if (!elements[i].off === Boolean(marked[i])) continue;
        elements[i].off = !marked[i];
        elements[i].classList.toggle('off', elements[i].off);
      }
    },
    ring(hovered, chosen) {
      layer.replaceChildren();
      ring(chosen, 'chosen');
      ring(hovered, 'focus');
    },
    // The row of the mark under the pointer, or -1.
    find(event, marked) {
      const matrix = svg.getScreenCTM();
      const x = (event.clientX - matrix.e) / matrix.a, y = (event.clientY - matrix.f) / matrix.d;
      return nearestRow(marks, marked, x, y, REACH / matrix.a);
    },
    onScreen(i) {
      const matrix = svg.getScreenCTM(), {x, y} = markPlace(marks, at[i]);
      return [x * matrix.a + matrix.e, y * matrix.d + matrix.f];
    }};
};

// Finds the pictures of `table` in the document. `act` says what to do: act.marked() gives which rows have marks,
// act.hovered() the row under the pointer, act.point(row, x, y) shows its numbers, act.hide() hides them, act.find(row)
// chooses it and brings it into view in the table, act.leave() chooses nothing.
export const createPictures = (table, narrow, act) => {
  const pictures = table.pictures.map((given) => createPicture(table, given));
  // By keyboard: the arrows go through the shown points from the longest to the shortest.
  const step = (picture, by) => {
    const rows = picture.rows.filter((i) => act.marked()[i]);
    if (table.share) rows.sort((a, b) => table.share.values[b] - table.share.values[a]);
    if (rows.length === 0) return;
    const now = rows.indexOf(act.hovered());
    const i = rows[now < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, now + by))];
    act.point(i, ...picture.onScreen(i), true);
  };
  const onKey = (picture, event) => {
    const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (by) step(picture, by);
    else if (event.key === 'Enter' && act.hovered() >= 0) act.find(act.hovered());
    else if (event.key === 'Escape') act.leave();
    else return;
    event.preventDefault();
  };
  for (const picture of pictures) {
    picture.svg.addEventListener('pointermove', (event) => {
      const i = picture.find(event, act.marked());
      if (i < 0) act.hide(); else act.point(i, event.clientX, event.clientY);
    });
    picture.svg.addEventListener('pointerleave', act.hide);
    picture.svg.addEventListener('blur', act.hide);
    picture.svg.addEventListener('click', (event) => {
      const i = picture.find(event, act.marked());
      if (i >= 0) act.find(i);
    });
    picture.svg.addEventListener('keydown', (event) => onKey(picture, event));
  }
  return {
    kinds: [...new Set(pictures.map((picture) => picture.kind))],
    // Marks of a picture that is not in view wait until it is.
    show(marked) {
      for (const picture of pictures) {
        if (picture.narrow === narrow.matches && getComputedStyle(picture.svg).display !== 'none') picture.show(marked);
      }
    },
    ring(hovered, chosen) {
      for (const picture of pictures) picture.ring(hovered, chosen);
    }};
};
