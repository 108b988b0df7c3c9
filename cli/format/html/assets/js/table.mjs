// A table on the screen: only the rows in view exist, and of those only the cells in view hold text, so that a change
// costs the same with fifty thousand rows as with fifty.
import {add, element} from './dom.mjs';
import {cellText, grouped, unitLabel, visible} from './number.mjs';

const ROW = 25;  // pixels; report.css has the same height
const MARGIN = 200;  // pixels on both sides of the view, so that scrolling shows no empty cells
const SPARE_ROWS = 4;  // above and below the view, for the same reason
const SAMPLED = 300;  // values of a column whose lengths decide its width
const MOST_NUMBER = 40, MOST_NAME = 24, MOST_TEXT = 34;  // widths in characters
const MOST_NAME_NARROW = 12, LEAST_NAME = 12, LEAST_NAME_COLUMN = 16;
const PADS = 1.8;  // the padding of a cell on both sides, in characters, rounded up

// The columns from left to right, without the hidden one, unless that names the rows. On a phone the spare one waits
// behind the last one that must be in view.
export const columnOrder = (table, narrow) => {
  const columns = table.columns.filter((column, k) => k === 0 || column !== table.hidden);
  const from = columns.indexOf(table.spare), to = columns.indexOf(table.inView);
  if (narrow && from >= 0 && to > from) columns.splice(to, 0, ...columns.splice(from, 1));
  return columns;
};

// What the table shows in a cell.
export const shownText = (table, column, i, narrow) =>
  column === table.naming[0] ? visible(table.name(i)) : cellText(column, table.value(column, i), narrow);

// The width of a column in characters: `want` is what its values need, `width` what it gets. It is settled once, from a
// sample of the values, so that the table does not twitch while rows come and go.
export const columnWidth = (table, column, narrow) => {
  const first = column === table.naming[0], text = column.kind === 'text';
  const heads = [...column.title.split(' ').map((word) => word.length * 1.15), unitLabel(column).length];
  const step = Math.max(1, Math.floor(table.count / SAMPLED));
  const sample = text ? column.words : [...column.totals || [], ...column.values.filter((_, i) => i % step === 0)];
  const lengths = sample.map((value) => cellText(column, value, narrow).length);
  if (first) {
    lengths.push(narrow ? 0 : LEAST_NAME_COLUMN, table.nameless.length);
    for (const other of table.naming.slice(1)) for (const word of other.words) lengths.push(word.length);
    for (const group of table.members.keys()) lengths.push(table.name(group).length + 2);
  }
  const want = lengths.reduce((most, length) => Math.max(most, length), Math.max(...heads));
  const most = !text ? MOST_NUMBER : first ? (narrow ? MOST_NAME_NARROW : MOST_NAME) : MOST_TEXT;
  const air = narrow || text && !first ? 0 : 1;
  if (narrow && first) return {want, width: Math.min(want + 1, most)};
  return {want: want + air, width: Math.min(want, most) + air};
};

// Which rows exist where `height` pixels are in view from `top`: from, and up to but without to. A filter may have left
// fewer rows than were scrolled over.
export const rowsInView = (top, height, count) => {
  const most = Math.ceil(height / ROW) + 2 * SPARE_ROWS;
  const from = Math.max(0, Math.min(Math.floor(top / ROW) - SPARE_ROWS, count - most));
  return [from, Math.min(count, from + most)];
};

const headOf = (column, sort) => {
  const button = element('button', {type: 'button', title: column.help || '', onclick: () => sort(column)}, column.title);
  const label = unitLabel(column);
  if (label) add(button, 'small', {}, label);
  return element('th', {scope: 'col', className: column.kind === 'text' ? '' : 'num'}, button);
};

// Sets the widths of `columns` (see columnWidth) for a view of `room` pixels: the name gives way to what must be in view,
// and texts that were cut take what room is left.
const fitColumns = (table, columns, html, room, narrow) => {
  const sizes = columns.map((column) => columnWidth(table, column, narrow));
  const cols = columns.map(() => element('col'));
  html.prepend(element('colgroup', {}, ...cols));
  const settle = () => {
    sizes.forEach(({width}, k) => { cols[k].style.width = `calc(${width}ch + 2*var(--pad))`; });
    const sum = sizes.reduce((all, {width}) => all + width, 0);
    html.style.width = `calc(${sum}ch + ${columns.length}*2*var(--pad))`;
    return sum;
  };
  const sum = settle(), character = html.offsetWidth / (sum + columns.length * PADS);
  const last = columns.indexOf(table.inView);
  if (last > 0 && !narrow) {
    const head = html.tHead.rows[0].cells[last], missing = head.offsetLeft + head.offsetWidth - room;
    if (missing > 0) {
      sizes[0].width = Math.max(Math.min(LEAST_NAME, sizes[0].width), sizes[0].width - Math.ceil(missing / character));
    }
  }
  let left = Math.floor((room - html.offsetWidth) / character) - 1;
  columns.forEach((column, k) => {
    const more = column.kind === 'text' ? Math.min(sizes[k].want - sizes[k].width, left) : 0;
    if (more <= 0) return;
    sizes[k].width += more;
    left -= more;
  });
  settle();
  return sizes.map(({width}) => width);
};

// The table in `scroller`. `act` says what to do: act.sort(column), act.choose(row), act.toggle(row),
// act.hover(row or -1).
export class TableView {
  constructor(table, scroller, narrow, act) {
    Object.assign(this, {table, scroller, narrow, columns: columnOrder(table, narrow), heads: null, drawn: ''});
    const html = this.html = add(scroller, 'table', {className: 'rows'});
    this.headRow = html.createTHead().insertRow();
    this.headRow.append(...this.columns.map((column) => headOf(column, act.sort)));
    const body = html.createTBody();
    const gap = () => add(body, 'tr', {className: 'gap', ariaHidden: 'true'}, element('td', {colSpan: this.columns.length}));
    this.gaps = [gap(), gap()];
    this.feet = this.makeFeet(html.createTFoot());
    this.widths = fitColumns(table, this.columns, html, scroller.clientWidth, narrow);
    this.fillTotals();
    const rowAt = (event) => +(event.target.closest('tr[data-i]')?.dataset.i ?? -1);
    body.addEventListener('click', (event) => {
      const i = rowAt(event);
      if (i >= 0) (table.members.has(i) ? act.toggle : act.choose)(i);
    });
    body.addEventListener('pointerover', (event) => act.hover(rowAt(event)));
    body.addEventListener('pointerleave', () => act.hover(-1));
  }

  newRow() {
    const cell = (column) => element('td', {className: column.kind === 'text' ? '' : 'num'}, '');
    return element('tr', {}, ...this.columns.map(cell));
  }

  // The sums of what is shown, and below them the totals of each run.
  makeFeet(foot) {
    const {table, columns} = this, totals = columns.some((column) => column.totals && column.totals.length);
    const sums = table.runs.length > 1 || table.count > 1 && columns.some((column) => column.additive);
    const feet = sums || totals ? ['', ...totals ? table.runs : []].map(() => foot.appendChild(this.newRow())) : [];
    feet.forEach((tr, k) => tr.style.setProperty('--below', feet.length - 1 - k));
    return feet;
  }

  fillTotals() {
    const {runs} = this.table;
    this.feet.slice(1).forEach((tr, k) => this.fillRow(tr, (column) => column === this.columns[0]
      ? 'All' + (runs.length > 1 ? ' of ' + visible(runs[k]) : '') : cellText(column, column.totals[k], this.narrow)));
  }

  fillSums(arranged, sum, inView) {
    if (this.feet.length === 0) return;
    const {table, columns, narrow} = this, {length} = arranged.order;
    this.fillRow(this.feet[0], (column) => {
      if (column === columns[0]) return (narrow ? '' : 'Shown: ') + grouped(length) + (length === 1 ? ' row' : ' rows');
      if (!column.additive || table.runs.length > 1 && column.kind === 'share') return '';
      return cellText(column, sum(column, arranged), narrow);
    }, inView);
  }

  // Only texts that differ are written. Of a path the end says more, of another text the beginning.
  fillRow(tr, text, inView) {
    this.columns.forEach((column, k) => {
      const td = tr.cells[k], full = !inView || inView[k] ? text(column) : '', width = this.widths[k];
      if (td.full === full) return;
      td.full = full;
      const path = column === this.table.path && !tr.classList.contains('group') && full.length > width;
      td.firstChild.data = path ? '…' + full.slice(1 - width) : full;
      if (column.kind === 'text') td.title = full.length > width - 4 ? full : '';
    });
  }

  // What part of the table is in view. Asked before anything is changed, or the browser has to lay out twice.
  look() {
    const {scroller} = this;
    if (!this.heads) this.heads = [...this.headRow.cells].map((th) => th.offsetWidth);
    const left = scroller.scrollLeft - MARGIN, right = scroller.scrollLeft + scroller.clientWidth + MARGIN;
    let edge = 0;
    const inView = this.heads.map((width, k) => (edge += width) > left && edge - width < right || k === 0);
    return {top: scroller.scrollTop, height: scroller.clientHeight, inView};
  }

  // Rows are reused. `shown` is {arranged, sum, state, chosen}; without `always` nothing happens while the same part of
  // the same rows is in view.
  draw(shown, always, view = this.look()) {
    const {order} = shown.arranged, {gaps} = this, [from, to] = rowsInView(view.top, view.height, order.length);
    const across = view.inView.map(Number).join(''), place = from + ' ' + to + ' ' + across;
    if (!always && this.drawn === place) return;
    const again = always || !this.drawn.endsWith(' ' + across);
    this.drawn = place;
    const body = this.html.tBodies[0];
    while (body.rows.length - gaps.length < to - from) gaps[1].before(this.newRow());
    while (body.rows.length - gaps.length > to - from) gaps[1].previousSibling.remove();
    gaps[0].cells[0].style.height = from * ROW + 'px';
    gaps[1].cells[0].style.height = (order.length - to) * ROW + 'px';
    for (let k = from, tr = gaps[0].nextSibling; k < to; k++, tr = tr.nextSibling) this.drawRow(tr, k, shown, view.inView);
    if (again) this.fillSums(shown.arranged, shown.sum, view.inView);
    this.html.ariaRowCount = order.length + 1;
    this.columns.forEach((column, k) => {
      this.headRow.cells[k].ariaSort = column !== shown.state.sort ? 'none' : shown.state.down ? 'descending' : 'ascending';
    });
  }

  drawRow(tr, place, {arranged, state, chosen}, inView) {
    const {table, narrow} = this, i = arranged.order[place], group = table.members.has(i);
    tr.dataset.i = i;
    tr.ariaRowIndex = place + 2;
    tr.className = (i === chosen ? 'selected' : '') + (group ? ' group' : '') +
      (arranged.grouped && table.memberOf[i] >= 0 ? ' member' : '');
    tr.ariaSelected = String(i === chosen);
    tr.ariaExpanded = group ? String(state.open.has(i)) : null;
    this.fillRow(tr, (column) => shownText(table, column, i, narrow), inView);
  }

  // Scrolls to the row at this place of the order, if it is not in view or `middle` wants it in the middle.
  scrollTo(place, middle) {
    const {scroller} = this, top = place * ROW;
    const height = scroller.clientHeight - this.headRow.offsetHeight - this.feet.length * ROW;
    if (!middle && top >= scroller.scrollTop && top + ROW <= scroller.scrollTop + height) return;
    scroller.scrollTop = middle ? top - height / 2 : top < scroller.scrollTop ? top : top + ROW - height;
  }

  // How many pixels a table of `count` rows takes.
  heightOf(count) {
    const {scroller} = this;
    return this.headRow.offsetHeight + (count + this.feet.length) * ROW + scroller.offsetHeight - scroller.clientHeight;
  }

  resized() { this.heads = null; }
}
