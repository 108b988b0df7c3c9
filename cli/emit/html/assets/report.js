// The page's behaviour. All numbers come from the JSON in #data; nothing is fetched. Work a frame is bounded: the table
// holds the rows in view only, and a filter touches only the marks whose state changes.
(() => {
const $ = (id) => document.getElementById(id);
const data = JSON.parse($('data').textContent);
// Lists of many numbers are packed (page_data.cc), and read when they are first asked for: most columns are never looked
// at, and the page opens sooner.
const PACKED = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array};
const unpack = (list) => {
  if (Array.isArray(list)) return list;
  const [type, text] = Object.entries(list)[0];
  if (type === 'json') return JSON.parse(text);
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const values = new PACKED[type](bytes.buffer);
  if (type === 'f4') for (const v of values) if (v !== v) return Array.from(values, (v) => v === v ? v : null);
  return values;
};
data.report_of = unpack(data.report_of);
const count = data.report_of.length;
const lazily = (object, key, make) => Object.defineProperty(object, key, {
  configurable: true, enumerable: true,
  get() { const value = make(); Object.defineProperty(object, key, {value}); return value; }});
// What is the same in every row is written once, and a column that equals another one names it.
const other = (key) => data.columns.find((c) => c.key === key).values;
for (const c of data.columns) {
  const written = c.values;
  if ('every' in c) lazily(c, 'values', () => new Array(count).fill(c.every));
  else if ('like' in c) lazily(c, 'values', () => other(c.like));
  else if ('per_step_of' in c) lazily(c, 'values', () => Array.from(other(c.per_step_of), (v, i) => v === null ? null : v / (data.reports[data.report_of[i]].steps || 1)));
  else lazily(c, 'values', () => unpack(written));
}
// Of a model of many layers those that are alike are one row, its members behind it.
const memberOf = data.member_of || new Array(count).fill(-1);
const members = new Map();  // of a group's row
memberOf.forEach((g, i) => { if (g >= 0) members.set(g, [...members.get(g) || [], i]); });
const columns = data.columns.length ? data.columns : [{key: 'layer', title: 'Layer', kind: 'text', unit: '', words: [], values: [], totals: data.reports.map(() => '')}];
const byKey = Object.fromEntries(columns.map((c) => [c.key, c]));
if (data.reports.length > 1) {
  columns.unshift({key: 'gpu', title: 'GPU', kind: 'text', unit: '', words: data.reports.map((r) => r.gpu),
                   values: data.report_of, totals: data.reports.map((r) => r.gpu)});
}
const raw = (c, i) => c.kind === 'text' ? c.words[c.values[i]] : c.values[i];
// The root of a model has an empty path; what is in no layer has no model either.
const groupName = (i) => raw(byKey.layer_group, i) + ' x' + raw(byKey.layers, i);
const layerOf = (i) => members.has(i) ? groupName(i) : byKey.layer && raw(byKey.layer, i) || byKey.model && raw(byKey.model, i) || '(no layer)';

// Characters that are invisible or turn the direction of the text around them are shown by their number.
const visible = (s) => s.replace(
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
    (c) => '<U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0') + '>');

// Numbers.
const PREFIX = {'-12': 'p', '-9': 'n', '-6': 'u', '-3': 'm', 0: '', 3: 'k', 6: 'M', 9: 'G', 12: 'T', 15: 'P', 18: 'E'};
const digits = (v, n) => {
  if (v === 0) return '0';
  const size = Math.abs(v);
  if (size < 1e-3) return v.toExponential(2);
  return v.toFixed(Math.max(0, Math.min(6, n - 1 - Math.floor(Math.log10(size) + 1e-12))));
};
const group = (v) => String(v).replace(/\B(?=(\d{3})+$)/g, '\u202f');
const exponent = (v) => v === 0 ? 0 : Math.max(-12, Math.min(18, 3 * Math.floor(Math.log10(Math.abs(v)) / 3 + 1e-9)));
const scaled = (c, v, e, n = 4) => digits(v * c.scale / 10 ** e, n);
// With its own prefix and unit, for the tooltip.
const full = (c, v) => {
  if (c.kind === 'text') return visible(v);
  if (c.kind === 'count') return group(v);
  if (c.kind === 'share') return digits(v * 100, 3) + ' %';
  if (c.kind === 'plain') return digits(v, 4) + (c.unit ? ' ' + c.unit : '');
  const e = exponent(v * c.scale);
  return scaled(c, v, e) + ' ' + PREFIX[e] + c.unit;
};
// In the table all numbers of a column have one prefix, so that lengths compare.
for (const c of columns) {
  c.exponent = 0;
  if (c.kind === 'unit') {
    let most = c.most || 0;
    if (!('most' in c)) for (const v of c.values) if (Math.abs(v) > most) most = Math.abs(v);
    c.exponent = exponent(most * c.scale);
  }
  c.label = c.kind === 'unit' ? PREFIX[c.exponent] + c.unit : c.unit;
}
// On a phone numbers have three digits, and phases short names.
const narrow = matchMedia('(max-width:700px)');
const DIGITS = narrow.matches ? 3 : 4;
const SHORT = {forward: 'fwd', backward: 'bwd', optimizer: 'opt', recompute: 'again', communication: 'comm'};
const cell = (c, v) => {
  if (v === null) return '';
  if (narrow.matches && c.key === 'phase') return SHORT[v] || v;
  if (c.kind === 'text') return visible(v);
  if (c.kind === 'count') return group(v);
  if (v === 0 && !c.additive) return '';
  return c.kind === 'share' ? digits(v * 100, 3) : c.kind === 'plain' ? digits(v, DIGITS) : scaled(c, v, c.exponent, DIGITS);
};

// What is shown. Rank and share are over all rows, so the slider means the same whatever else is filtered; several runs
// are ranked each for itself.
const time = byKey.time_share ? byKey.time_share.values : new Array(count).fill(0);
const phaseColumn = byKey.phase;
const phaseOf = (i) => phaseColumn ? raw(phaseColumn, i) : '';
// The share of the run's time in longer rows, of those that `counts`.
const timeBefore = (counts) => {
  const before = new Float64Array(count);
  for (let r = 0; r < data.reports.length; r++) {
    let sum = 0;
    const own = [];
    for (let i = 0; i < count; i++) if (data.report_of[i] === r && counts(i)) own.push(i);
    for (const i of own.sort((a, b) => time[b] - time[a])) {
      before[i] = sum;
      sum += time[i];
    }
  }
  return before;
};
const before = timeBefore((i) => !members.has(i));
const beforeGrouped = members.size ? timeBefore((i) => memberOf[i] < 0) : before;
const words = ['model', 'layer', 'op', 'kernel', 'line', 'function', 'class', 'layer_group', 'signature'].map((k) => byKey[k]).filter(Boolean);
let haystack = null;
const state = {share: 100, phases: new Set(), search: '', sort: byKey.time_share || columns[0], down: true, chosen: -1,
               hover: -1, grouped: members.size > 0, open: new Set()};
const shown = new Uint8Array(count).fill(1);  // in the table
const marked = new Uint8Array(count).fill(1);  // in the pictures: an open group has a row, and its members have the marks
let sorted = Array.from({length: count}, (_, i) => i);  // all rows
let order = [];  // those shown, as sorted

// Marks.
const NO_PLACE = 0xffff;
const pictures = data.pictures.map((p) => {
  const svg = $(p.id), marks = p.marks;
  for (const k in marks) {
    const written = marks[k];
    lazily(marks, k, () => typeof written === 'string' ? data.pictures.find((one) => one.id === written).marks[k] : unpack(written));
  }
  const elements = new Array(count);
  for (const e of svg.querySelectorAll('.m')) elements[e.dataset.i] = e;
  const self = {svg, marks, group: svg.querySelector('.marks'), elements, kind: p.kind, narrow: p.narrow};
  lazily(self, 'rows', () => marks.rows);
  lazily(self, 'at', () => {  // of a row: the place of its mark in the lists, or -1
    const at = new Int32Array(count).fill(-1);
    marks.rows.forEach((row, k) => { at[row] = k; });
    return at;
  });
  // Rings are in a picture of their own over this one, or all marks would be painted again with each of them.
  const layer = svg.cloneNode(false);
  for (const name of ['id', 'role', 'aria-labelledby']) layer.removeAttribute(name);
  layer.classList.add('over');
  layer.ariaHidden = 'true';
  svg.after(layer);
  svg.tabIndex = 0;
  svg.setAttribute('aria-label', svg.querySelector('title').textContent + '. Arrow keys go through the points.');
  svg.querySelector('title').remove();  // a browser would show it as a tooltip over ours
  svg.removeAttribute('aria-labelledby');
  // Where a row's mark is: in pixels of the picture, with its target where it has one.
  const place = (i) => {
    const k = self.at[i];
    if (k < 0) return null;
    const tx = (marks.tx || marks.x)[k], ty = marks.ty ? marks.ty[k] : NO_PLACE;
    return {x: marks.x[k] / 10, y: marks.y[k] / 10, r: (marks.r[k] ?? marks.r.at(-1)) / 10, target: tx !== NO_PLACE && ty !== NO_PLACE, tx: tx / 10, ty: ty / 10};
  };
  const css = (i) => marks.names[marks.css[self.at[i]]];
  return Object.assign(self, {place, css, layer});
});
const shape = (parent, name, attributes) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  parent.append(e);
  return e;
};
const ring = (p, i, css) => {
  const m = p.place(i);
  if (!m) return;
  if (m.target) shape(p.layer, 'line', {class: 'focus line', x1: m.x, y1: m.y, x2: m.tx, y2: m.ty});
  shape(p.layer, 'circle', {class: css, cx: m.x, cy: m.y, r: m.r * 1.15 + 3});
};
const drawRings = () => {
  for (const p of pictures) {
    p.layer.replaceChildren();
    if (state.chosen >= 0) ring(p, state.chosen, 'chosen');
    if (state.hover >= 0) ring(p, state.hover, 'focus');
  }
};

// Table.
const table = $('rows'), scroller = $('scroller'), body = table.tBodies[0];
const ROW = 25;
const COLUMN_MARGIN = 200;  // pixels on both sides of the view, so that scrolling shows no empty cells
const tableColumns = columns.filter((c) => c.key !== 'model' || c.words.filter(Boolean).length > 1);
const first = ['layer', 'kernel', 'op', 'line', 'phase', 'model'].find((k) => byKey[k]);  // stays in view when scrolling
tableColumns.sort((a, b) => (b.key === first) - (a.key === first));
if (narrow.matches) {  // intensity waits until the table is scrolled
  const oi = tableColumns.findIndex((c) => c.key === 'oi_flop_per_byte'), bound = tableColumns.findIndex((c) => c.key === 'bound');
  if (oi >= 0 && bound > oi) tableColumns.splice(bound, 0, ...tableColumns.splice(oi, 1));
}
const headRow = table.tHead.insertRow();
for (const c of tableColumns) {
  const th = document.createElement('th');
  th.scope = 'col';
  if (c.kind !== 'text') th.className = 'num';
  const button = document.createElement('button');
  button.type = 'button';
  button.append(c.title);
  if (c.label) {
    const small = document.createElement('small');
    small.textContent = c.label;
    button.append(small);
  }
  button.onclick = () => {
    state.down = state.sort === c ? !state.down : c.kind !== 'text';
    state.sort = c;
    sortRows();
    scroller.scrollTop = 0;
    apply();
  };
  c.th = th;
  th.append(button);
  headRow.append(th);
}
// Widths are settled once, from a sample of the values: the table does not twitch while rows come and go.
const colgroup = document.createElement('colgroup');
table.prepend(colgroup);
for (const c of tableColumns) {
  let most = Math.max(...c.title.split(' ').map((w) => w.length * 1.15), (c.label || '').length);
  const step = Math.max(1, Math.floor(count / 300));
  const sample = c.kind === 'text' ? c.words : [...c.totals, ...c.sample || c.values.filter((_, i) => i % step === 0)];
  for (const v of sample) most = Math.max(most, cell(c, v).length);
  if (c === tableColumns[0]) most = Math.max(most, narrow.matches ? 0 : 16, ...data.models.map((m) => m.length), ...[...members.keys()].map((i) => groupName(i).length + 2));
  // On a phone the columns that matter most must stand beside the name.
  c.width = Math.min(most, c.kind !== 'text' ? 40 : c === tableColumns[0] ? (narrow.matches ? 12 : 24) : 34) + (narrow.matches || c.kind === 'text' && c !== tableColumns[0] ? 0 : 1);
  c.col = document.createElement('col');
  colgroup.append(c.col);
}
const settleWidths = () => {
  for (const c of tableColumns) c.col.style.width = 'calc(' + c.width + 'ch + 2*var(--pad))';
  const sum = tableColumns.reduce((all, c) => all + c.width, 0);
  table.style.width = 'calc(' + sum + 'ch + ' + tableColumns.length + '*2*var(--pad))';
};
settleWidths();
// What tells most stands beside the name without scrolling: where there is no room for it, the name gives way.
const LEAST_NAME = 12;  // characters
const [naming] = tableColumns, last = byKey.bound;
if (last && last.th && last !== naming && !narrow.matches) {
  const shown = tableColumns.slice(0, tableColumns.indexOf(last) + 1), right = last.th.offsetLeft + last.th.offsetWidth;
  const PADS = 1.8;  // both of a cell, in characters, rounded up
  const missing = right - scroller.clientWidth, character = right / shown.reduce((all, c) => all + c.width + PADS, 0);
  if (missing > 0) {
    naming.width = Math.max(Math.min(LEAST_NAME, naming.width), naming.width - Math.ceil(missing / character));
    settleWidths();
  }
}

const newRow = (tr) => {
  for (const c of tableColumns) {
    const td = tr.insertCell();
    if (c.kind !== 'text') td.className = 'num';
    td.append('');
  }
  return tr;
};
const fillRow = (tr, value, inView) => {
  tableColumns.forEach((c, k) => {
    const text = !inView || inView[k] ? value(c) : '', td = tr.cells[k];
    if (td.full === text) return;
    td.full = text;
    // Of a layer's path the end says more, of a group's name the beginning.
    const path = c.key === 'layer' && !tr.classList.contains('group');
    td.firstChild.data = path && text.length > c.width ? '…' + text.slice(1 - c.width) : text;
    if (c.kind === 'text') td.title = text.length > c.width - 4 ? text : '';
  });
};
// Rows are reused: only those in view exist, and only texts that differ are written.
const gaps = [0, 1].map(() => {
  const tr = body.insertRow();
  tr.className = 'gap';
  tr.ariaHidden = 'true';
  tr.insertCell().colSpan = tableColumns.length;
  return tr;
});
const pool = [];
let widths = null;
// What part of the table is in view. Asked before anything is changed, or the browser has to lay out twice.
const look = () => {
  if (!widths) widths = tableColumns.map((c) => c.th.offsetWidth);
  const left = scroller.scrollLeft - COLUMN_MARGIN, right = scroller.scrollLeft + scroller.clientWidth + COLUMN_MARGIN;
  let edge = 0;
  const inView = widths.map((width, k) => (edge += width) > left && edge - width < right || k === 0);
  return {top: scroller.scrollTop, height: scroller.clientHeight, inView};
};
let drawn = '';
// Cells out of view are empty, and so cost no layout: of forty columns six or seven are in view.
const drawTable = (always, view = look()) => {
  const most = Math.ceil(view.height / ROW) + 8;
  // A filter may have left fewer rows than were scrolled over.
  const from = Math.max(0, Math.min(Math.floor(view.top / ROW) - 4, order.length - most));
  const to = Math.min(order.length, from + most);
  const across = view.inView.map(Number).join(''), place = from + ' ' + to + ' ' + across;
  if (!always && drawn === place) return;
  const totals = always || !drawn.endsWith(' ' + across);
  drawn = place;
  while (pool.length < to - from) {
    pool.push(newRow(document.createElement('tr')));
    gaps[1].before(pool.at(-1));
  }
  while (pool.length > to - from) pool.pop().remove();
  gaps[0].cells[0].style.height = from * ROW + 'px';
  gaps[1].cells[0].style.height = (order.length - to) * ROW + 'px';
  for (let k = from; k < to; k++) {
    const i = order[k], tr = pool[k - from];
    tr.dataset.i = i;
    tr.ariaRowIndex = k + 2;
    tr.className = (i === state.chosen ? 'selected' : '') + (members.has(i) ? ' group' : '') +
      (state.grouped && memberOf[i] >= 0 ? ' member' : '');
    tr.ariaExpanded = members.has(i) ? String(state.open.has(i)) : null;
    fillRow(tr, (c) => c.key === 'layer' ? visible(layerOf(i)) : cell(c, raw(c, i)), view.inView);
  }
  if (totals) drawTotals(view.inView);
};
const sortRows = () => {
  const c = state.sort, sign = state.down ? -1 : 1;
  const text = c.kind === 'text' ? c.words.map((w, i) => [w, i]).sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0) : null;
  let rank = c.values;
  if (text) {  // compare words once, not once a row
    const place = new Array(text.length);
    text.forEach(([, i], k) => place[i] = k);
    rank = c.values.map((v) => place[v]);
  }
  const of = (i) => rank[i] === null ? -Infinity : rank[i];
  sorted.sort((a, b) => of(a) === of(b) ? a - b : sign * (of(a) < of(b) ? -1 : 1));
  for (const other of tableColumns) other.th.ariaSort = other === c ? (state.down ? 'descending' : 'ascending') : 'none';
};
const runs = data.reports.length;
const foot = [newRow(table.tFoot.insertRow()), ...data.reports.map(() => newRow(table.tFoot.insertRow()))];
foot.forEach((tr, k) => tr.style.setProperty('--below', foot.length - 1 - k));
data.reports.forEach((r, k) => fillRow(foot[k + 1], (c) =>
  c === tableColumns[0] ? 'All' + (runs > 1 ? ' of ' + visible(r.gpu) : '') : cell(c, c.totals[k])));
const drawTotals = (inView) => fillRow(foot[0], (c) => {
  if (c === tableColumns[0]) return (narrow.matches ? '' : 'Shown: ') + group(order.length) + (order.length === 1 ? ' row' : ' rows');
  if (!c.additive || (runs > 1 && c.kind === 'share')) return '';
  let sum = 0;
  for (const i of order) if (!state.open.has(memberOf[i])) sum += c.values[i];  // their group is there
  return cell(c, sum);
}, inView);

// Filters.
// Marks of a picture that is not in view can wait until it is, and those that the document lacks are drawn when they are
// first shown.
const hideMarks = () => {
  for (const p of pictures) {
    if (p.kind !== (document.body.dataset.view || 'roofline') || p.narrow !== narrow.matches) continue;
    for (const i of p.rows) {
      if (!p.elements[i]) {
        if (!marked[i]) continue;
        const m = p.place(i);
        p.elements[i] = shape(p.group, 'path', {class: p.css(i), d: data.icons[phaseOf(i)] || data.icons[''],
          transform: `translate(${m.x} ${m.y}) scale(${m.r / data.icon_radius})`, 'vector-effect': 'non-scaling-stroke'});
        p.elements[i].dataset.i = i;
      }
      const e = p.elements[i];
      if (!e.off === Boolean(marked[i])) continue;
      e.off = !marked[i];
      e.classList.toggle('off', e.off);
    }
  }
};
const apply = () => {
  const view = look();
  const limit = state.share >= 100 ? Infinity : state.share / 100;
  const needle = state.search.toLowerCase();
  if (needle && !haystack) {
    haystack = Array.from({length: count}, (_, i) => words.map((c) => raw(c, i)).join('\n').toLowerCase());
  }
  const grouped = state.grouped && !needle;  // who looks for a layer gets that layer
  const longer = grouped ? beforeGrouped : before;
  order = [];
  shown.fill(0);
  marked.fill(0);
  let sum = 0, all = 0;
  const opened = new Map([...state.open].map((g) => [g, []]));
  if (grouped && opened.size) for (const i of sorted) if (opened.has(memberOf[i])) opened.get(memberOf[i]).push(i);
  for (const i of sorted) {
    if (grouped ? memberOf[i] >= 0 : members.has(i)) continue;
    all++;
    if (!(longer[i] < limit && state.phases.has(phaseOf(i)) && (!needle || haystack[i].includes(needle)))) continue;
    order.push(i);
    shown[i] = 1;
    marked[i] = !opened.has(i) || !grouped ? 1 : 0;
    sum += time[i];
    if (!grouped || !opened.has(i)) continue;
    for (const m of opened.get(i)) {
      order.push(m);
      shown[m] = marked[m] = 1;
    }
  }
  hideMarks();
  if (state.hover >= 0 && !marked[state.hover]) hide();
  drawTable(true, view);
  $('share-text').textContent = state.share + ' %';
  $('shown').textContent = group(order.filter((i) => !grouped || memberOf[i] < 0).length) + ' of ' + group(all) + ' rows, ' +
    digits(100 * sum / Math.max(1, data.reports.length), 3) + ' % of GPU time';
  table.ariaRowCount = order.length + 1;
};
let pending = false;
const later = () => {  // at most one pass a frame, however fast the slider moves
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; apply(); });
};

// Tooltip.
const tip = $('tip');
const nameOf = (i) => members.has(i) ? visible(groupName(i)) : visible(['layer', 'model', 'op', 'kernel', 'line'].map((k) => byKey[k] && raw(byKey[k], i)).find(Boolean) || '(no layer)');
const show = (i, x, y) => {
  if (state.hover !== i) {
    state.hover = i;
    const table = document.createElement('table');
    for (const c of columns) {
      const v = raw(c, i);
      if (v === '' || v === 0 || v === null) continue;
      const tr = table.insertRow();
      tr.dataset.key = c.key;
      tr.insertCell().textContent = c.title;
      tr.insertCell().textContent = full(c, v);
    }
    const b = document.createElement('b');
    b.textContent = (data.models.length > 1 && byKey.layer && raw(byKey.layer, i) ? visible(raw(byKey.model, i)) + ' ' : '') + nameOf(i) + (phaseOf(i) ? ', ' + phaseOf(i) : '');
    tip.replaceChildren(b, table);
    tip.hidden = false;
    drawRings();
  }
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.max(4, x + 18 + w < innerWidth ? x + 18 : x - w - 18) + 'px';
  tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - h - 6)) + 'px';
};
const hide = () => {
  if (state.hover < 0) return;
  state.hover = -1;
  tip.hidden = true;
  drawRings();
};
// A row's or a mark's click: a group opens or closes, a layer is selected.
const choose = (i, scroll) => {
  if (members.has(i)) {
    if (state.open.has(i)) state.open.delete(i); else state.open.add(i);
    hide();
    apply();
    return;
  }
  state.chosen = state.chosen === i ? -1 : i;
  drawRings();
  if (scroll && state.chosen >= 0) {
    const k = order.indexOf(i);
    if (k >= 0) scroller.scrollTop = Math.max(0, k * ROW - scroller.clientHeight / 2 + 2 * ROW);
  }
  drawTable(true);
};
// The mark under the pointer, the smallest where several overlap, or the nearest one within reach.
const nearest = (p, event) => {
  const matrix = p.svg.getScreenCTM();
  const x = (event.clientX - matrix.e) / matrix.a, y = (event.clientY - matrix.f) / matrix.d;
  const {rows, marks} = p, {x: xs, y: ys, r: radii} = marks, last = radii.at(-1);
  let best = -1, least = 9 / matrix.a;
  for (let k = 0; k < rows.length; ++k) {  // no object a mark, of which there can be 50,000
    const i = rows[k];
    if (!marked[i]) continue;
    const r = (radii[k] ?? last) / 10, d = Math.hypot(xs[k] / 10 - x, ys[k] / 10 - y) - r;
    const score = d <= 0 ? -1e6 + r * 100 + d : d;
    if (score < least) {
      least = score;
      best = i;
    }
  }
  return best;
};
const toScreen = (p, i) => {
  const matrix = p.svg.getScreenCTM(), m = p.place(i);
  return [m.x * matrix.a + matrix.e, m.y * matrix.d + matrix.f];
};
for (const p of pictures) {
  p.svg.addEventListener('pointermove', (event) => {
    const i = nearest(p, event);
    if (i < 0) hide(); else show(i, event.clientX, event.clientY);
  });
  p.svg.addEventListener('pointerleave', hide);
  p.svg.addEventListener('blur', hide);
  p.svg.addEventListener('click', (event) => {
    const i = nearest(p, event);
    if (i >= 0) choose(i, true);
  });
  // By keyboard: the arrows go through the shown points from the longest to the shortest.
  p.svg.addEventListener('keydown', (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (step) {
      const list = [...p.rows].filter((i) => marked[i]).sort((a, b) => time[b] - time[a]);
      if (list.length === 0) return;
      const now = list.indexOf(state.hover);
      const i = list[now < 0 ? 0 : Math.max(0, Math.min(list.length - 1, now + step))];
      show(i, ...toScreen(p, i));
      $('live').textContent = tip.textContent;
    } else if (event.key === 'Enter' && state.hover >= 0) {
      choose(state.hover, true);
    } else if (event.key === 'Escape') {
      hide();
      if (state.chosen >= 0) choose(state.chosen);
    } else {
      return;
    }
    event.preventDefault();
  });
}

body.addEventListener('click', (event) => {
  const tr = event.target.closest('tr[data-i]');
  if (tr) choose(+tr.dataset.i, false);
});
body.addEventListener('pointerover', (event) => {
  const tr = event.target.closest('tr[data-i]');
  state.hover = tr ? +tr.dataset.i : -1;
  tip.hidden = true;
  drawRings();
});
body.addEventListener('pointerleave', hide);
scroller.addEventListener('scroll', () => drawTable(false), {passive: true});
addEventListener('resize', () => { widths = null; hideMarks(); drawTable(true); });

$('share').oninput = () => { state.share = +$('share').value; later(); };
$('search').oninput = () => { state.search = $('search').value.trim(); later(); };
const names = phaseColumn ? phaseColumn.words : [''];
state.phases = new Set(names);
const ORDER = ['forward', 'recompute', 'backward', 'optimizer', 'communication', 'data', 'other', ''];
for (const name of phaseColumn ? [...names].sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b)) : []) {
  const label = document.createElement('label'), box = document.createElement('input');
  box.type = 'checkbox';
  box.checked = true;
  box.onchange = () => {
    if (box.checked) state.phases.add(name); else state.phases.delete(name);
    later();
  };
  const icon = shape(label, 'svg', {viewBox: '-7 -7 14 14'});
  shape(icon, 'path', {d: data.icons[name] || data.icons['']});
  label.prepend(box);
  label.append(name || 'no phase');
  $('phases').append(label);
}
if (members.size) {
  $('grouping').hidden = false;
  $('grouped').onchange = () => {
    state.grouped = $('grouped').checked;
    state.open.clear();
    apply();
  };
}
for (const button of document.querySelectorAll('[data-view]:not(body)')) {
  button.onclick = () => {
    document.body.dataset.view = button.dataset.view;
    hideMarks();
    for (const b of document.querySelectorAll('.segmented button')) b.ariaPressed = String(b.dataset.view === button.dataset.view);
    hide();
    if (button.className === 'link') document.querySelector('.pictures').scrollIntoView({block: 'nearest'});
  };
}
$('csv').onclick = () => {
  const quote = (s) => /[",\r\n]/.test(s) ? '"' + s.replaceAll('"', '""') + '"' : s;
  const lines = [columns.map((c) => c.key).join(',')];
  const rows = order.flatMap((i) => !members.has(i) ? [i] : state.open.has(i) ? [] : members.get(i));
  const exact = (v) => quote(String(v));
  const text = columns.map((c) => c.values instanceof Float32Array ? (v) => String(+v.toPrecision(7)) : exact);
  for (const i of rows) lines.push(columns.map((c, k) => [raw(c, i), k]).map(([v, k]) => v === null ? '' : text[k](v)).join(','));
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([lines.join('\n') + '\n'], {type: 'text/csv'}));
  link.download = 'rfinject.csv';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
};
state.share = +$('share').value;
sortRows();
apply();
})();
