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

// The columns from left to right, without the hidden one, unless that names the rows. On a phone the spare one waits behind the last one that must be in view.
export const columnOrder = (table, narrow) => {
  const columns = table.columns.filter((column, k) => k === 0 || column !== table.hidden);
  const from = columns.indexOf(table.spare), to = columns.indexOf(table.inView);
  if (narrow && from >= 0 && to > from) columns.splice(to, 0, ...columns.splice(from, 1));
  return columns;
};

// What the table shows in a cell.
export const shownText = (table, column, i, narrow) =>
  column === table.naming[0] ? visible(table.name(i)) || table.nameless : cellText(column, table.value(column, i), narrow);

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

// Builds the table in `scroller`. `act` says what to do: act.sort(column), act.choose(row), act.toggle(row),
// act.hover(row or -1).
export const createTable = (table, scroller, narrow, act) => {
  const columns = columnOrder(table, narrow), {members, memberOf} = table;
  const html = element('table', {className: 'rows'});
  const headRow = html.createTHead().insertRow(), body = html.createTBody(), foot = html.createTFoot();
  headRow.append(...columns.map((column) => headOf(column, act.sort)));
  scroller.append(html);
  const widths = fitColumns(table, columns, html, scroller.clientWidth, narrow);

  const newRow = () => {
    const tr = document.createElement('tr');
    for (const column of columns) tr.append(element('td', {className: column.kind === 'text' ? '' : 'num'}, ''));
    return tr;
  };
  // Only texts that differ are written. Of a path the end says more, of another text the beginning.
  const fillRow = (tr, text, inView) => columns.forEach((column, k) => {
    const td = tr.cells[k], full = !inView || inView[k] ? text(column) : '';
    if (td.full === full) return;
    td.full = full;
    const path = column === table.path && !tr.classList.contains('group') && full.length > widths[k];
    td.firstChild.data = path ? '…' + full.slice(1 - widths[k]) : full;
    if (column.kind === 'text') td.title = full.length > widths[k] - 4 ? full : '';
  });
  const gaps = [0, 1].map(() => {
    const tr = add(body, 'tr', {className: 'gap', ariaHidden: 'true'});
    tr.insertCell().colSpan = columns.length;
    return tr;
  });

  const sums = table.count > 1 && columns.some((column) => column.additive) || table.runs.length > 1;
  const totalRows = columns.some((column) => column.totals && column.totals.length) ? table.runs : [];
  const feet = sums || totalRows.length ? ['', ...totalRows].map(() => foot.appendChild(newRow())) : [];
  feet.forEach((tr, k) => tr.style.setProperty('--below', feet.length - 1 - k));
  totalRows.forEach((run, k) => fillRow(feet[k + 1], (column) => column === columns[0]
    ? 'All' + (table.runs.length > 1 ? ' of ' + visible(run) : '') : cellText(column, column.totals[k], narrow)));
  const fillSums = (arranged, sum, inView) => feet.length && fillRow(feet[0], (column) => {
    const {length} = arranged.order;
    if (column === columns[0]) return (narrow ? '' : 'Shown: ') + grouped(length) + (length === 1 ? ' row' : ' rows');
    if (!column.additive || table.runs.length > 1 && column.kind === 'share') return '';
    return cellText(column, sum(column, arranged), narrow);
  }, inView);

  let heads = null, drawn = '';
  // What part of the table is in view. Asked before anything is changed, or the browser has to lay out twice.
  const look = () => {
    if (!heads) heads = [...headRow.cells].map((th) => th.offsetWidth);
    const left = scroller.scrollLeft - MARGIN, right = scroller.scrollLeft + scroller.clientWidth + MARGIN;
    let edge = 0;
    const inView = heads.map((width, k) => (edge += width) > left && edge - width < right || k === 0);
    return {top: scroller.scrollTop, height: scroller.clientHeight, inView};
  };
  // Rows are reused. `shown` is {arranged, sum, state, chosen}; without `always` nothing happens while the same part of
  // the same rows is in view.
  const draw = ({arranged, sum, state, chosen}, always, view = look()) => {
    const {order} = arranged, [from, to] = rowsInView(view.top, view.height, order.length);
    const across = view.inView.map(Number).join(''), place = from + ' ' + to + ' ' + across;
    if (!always && drawn === place) return;
    const again = always || !drawn.endsWith(' ' + across);
    drawn = place;
    while (body.rows.length - gaps.length < to - from) gaps[1].before(newRow());
    while (body.rows.length - gaps.length > to - from) gaps[1].previousSibling.remove();
    gaps[0].cells[0].style.height = from * ROW + 'px';
    gaps[1].cells[0].style.height = (order.length - to) * ROW + 'px';
    for (let k = from, tr = gaps[0].nextSibling; k < to; k++, tr = tr.nextSibling) {
      const i = order[k], group = members.has(i);
      tr.dataset.i = i;
      tr.ariaRowIndex = k + 2;
      tr.className = (i === chosen ? 'selected' : '') + (group ? ' group' : '') + (arranged.grouped && memberOf[i] >= 0 ? ' member' : '');
      tr.ariaSelected = String(i === chosen);
      tr.ariaExpanded = group ? String(state.open.has(i)) : null;
      fillRow(tr, (column) => shownText(table, column, i, narrow), view.inView);
    }
    if (again) fillSums(arranged, sum, view.inView);
    html.ariaRowCount = order.length + 1;
    columns.forEach((column, k) => {
      headRow.cells[k].ariaSort = column === state.sort ? (state.down ? 'descending' : 'ascending') : 'none';
    });
  };
  // Scrolls to the row at this place of the order, if it is not in view or `middle` wants it in the middle.
  const scrollTo = (place, middle) => {
    const head = headRow.offsetHeight, height = scroller.clientHeight - head - feet.length * ROW, top = place * ROW;
    if (!middle && top >= scroller.scrollTop && top + ROW <= scroller.scrollTop + height) return;
    scroller.scrollTop = middle ? top - height / 2 : top < scroller.scrollTop ? top : top + ROW - height;
  };

  const rowAt = (event) => {
    const tr = event.target.closest('tr[data-i]');
    return tr ? +tr.dataset.i : -1;
  };
  body.addEventListener('click', (event) => {
    const i = rowAt(event);
    if (i >= 0 && members.has(i)) act.toggle(i);
    else if (i >= 0) act.choose(i);
  });
  body.addEventListener('pointerover', (event) => act.hover(rowAt(event)));
  body.addEventListener('pointerleave', () => act.hover(-1));
  return {look, draw, scrollTo, forgetWidths: () => { heads = null; }};
};
