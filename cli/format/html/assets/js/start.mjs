// Begins the page: the theme's button, every table with its filters and pictures, and the bar of sections. All numbers come
// from the JSON in the page; nothing is fetched.
import {createControls} from './controls.mjs';
import {inflate, readTable} from './data.mjs';
import {add, element} from './dom.mjs';
import {createFilter} from './filter.mjs';
import {createPictures} from './picture.mjs';
import {startSections} from './sections.mjs';
import {TableView, shownText} from './table.mjs';
import {startTheme} from './theme.mjs';
import {createTooltip} from './tooltip.mjs';

// The frame of a table: the bar of its filters, the line above its rows, and what scrolls. Filters that also change
// pictures stand above both of them and stay in view.
const createFrame = (box, table) => {
  const frame = add(box, 'div', {className: 'tablebox'});
  const head = add(frame, 'div', {className: 'tablehead'});
  const scroller = add(frame, 'div', {className: 'scroller', tabIndex: 0, role: 'region', ariaLabel: 'Table: ' + table.heading});
  const linked = box.closest('.linked');
  if (!table.pictures.length || !linked) return {frame, head, scroller, bar: head};
  const bar = element('div', {className: 'controls', role: 'toolbar', ariaLabel: 'Filters'});
  linked.prepend(bar);
  new ResizeObserver(() => linked.style.setProperty('--controls', bar.offsetHeight + 'px')).observe(bar);
  return {frame, head, scroller, bar};
};

// A table that stands alone begins with a few rows; a button brings the others.
const FIRST_ROWS = 12;
const addMore = (frame, table, draw) => {
  frame.classList.add('short');
  frame.style.setProperty('--head', frame.querySelector('thead').offsetHeight + 'px');
  if (table.count <= FIRST_ROWS) return;
  const more = add(frame, 'button', {type: 'button', className: 'more', ariaExpanded: 'false'});
  const name = () => { more.textContent = frame.classList.contains('all') ? 'Fewer rows' : 'More rows'; };
  more.onclick = () => {
    more.ariaExpanded = String(frame.classList.toggle('all'));
    name();
    draw();
  };
  name();
};

// A table with its filters and pictures: what is done to one of them changes the others.
class Part {
  constructor(box, table, tooltip) {
    const narrow = matchMedia('(max-width:700px)'), {frame, head, scroller, bar} = createFrame(box, table);
    Object.assign(this, {table, tooltip, frame, head, scroller, filter: createFilter(table), hovered: -1, chosen: -1,
      pending: false, most: 0});
    this.arranged = this.filter.arrange();
    this.pictures = createPictures(table, narrow, {
      marked: () => this.arranged.marked, hovered: () => this.hovered, hide: () => this.hide(),
      point: (i, x, y, aloud) => this.point(i, x, y, aloud), find: (i) => this.find(i), leave: () => this.leave()});
    this.view = new TableView(table, scroller, narrow.matches, {
      choose: (i) => this.choose(i), toggle: (i) => this.toggle(i), sort: (column) => this.sort(column),
      hover: (i) => this.point(i)});
    this.controls = createControls(table, this.filter, this.pictures, bar, head, () => this.later(),
      () => this.filter.leaves(this.arranged));
    if (bar === head) addMore(frame, table, () => this.draw());
    scroller.addEventListener('scroll', () => this.draw(), {passive: true});
    scroller.addEventListener('keydown', (event) => this.onKey(event));
    addEventListener('resize', () => this.resized());
    addEventListener('viewchange', () => {
      this.hide();
      this.pictures.show(this.arranged.marked);
    });
    this.apply();
  }

  draw(always, view) {
    const {arranged, chosen, filter: {sum, state}} = this;
    this.view.draw({arranged, sum, state, chosen}, always, view);
  }

  // Shows what the filter leaves.
  apply() {
    const view = this.view.look();
    this.arranged = this.filter.arrange();
    this.pictures.show(this.arranged.marked);
    if (this.hovered >= 0 && !this.arranged.marked[this.hovered]) this.hide();
    this.draw(true, view);
    this.draw();  // a table that stands alone is as high as its rows
    this.fit();
    this.controls.show(this.arranged);
  }

  // A table of few rows ends behind them. A filter makes it no smaller, which would move what is below it.
  fit() {
    const {frame, head, view} = this, border = 2;
    this.most = Math.max(this.most, this.arranged.order.length);
    frame.style.setProperty('--whole', head.offsetHeight + view.heightOf(this.most) + border + 'px');
  }

  later() {  // at most one pass a frame, however fast the slider moves
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.apply();
    });
  }

  sort(column) {
    const {state} = this.filter;
    state.down = state.sort === column ? !state.down : column.kind !== 'text';
    state.sort = column;
    this.scroller.scrollTop = 0;
    this.apply();
  }

  // Rings row i (-1: none). Its numbers are shown at (x, y), where that is given.
  point(i, x, y, aloud) {
    if (x === undefined) this.tooltip.hide(); else this.tooltip.show(this.table, i, x, y, aloud);
    if (this.hovered === i) return;
    this.hovered = i;
    this.pictures.ring(i, this.chosen);
  }

  hide() { this.point(-1); }

  toggle(group) {
    const {open} = this.filter.state;
    if (!open.delete(group)) open.add(group);
    this.hide();
    this.apply();
  }

  choose(i) {
    this.chosen = this.chosen === i ? -1 : i;
    this.pictures.ring(this.hovered, this.chosen);
    this.draw(true);
  }

  // From a mark to its row.
  find(i) {
    if (this.table.members.has(i)) return this.toggle(i);
    this.choose(i);
    const place = this.arranged.order.indexOf(this.chosen);
    if (place >= 0) this.view.scrollTo(place, true);
  }

  leave() {
    this.hide();
    if (this.chosen >= 0) this.choose(this.chosen);
  }

  // The arrows go through the rows, Enter opens a group.
  onKey(event) {
    const by = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (event.target !== this.scroller) return;
    if (by) this.step(by);
    else if (event.key === 'Enter' && this.table.members.has(this.chosen)) this.toggle(this.chosen);
    else if (event.key === 'Escape' && this.chosen >= 0) this.leave();
    else return;
    event.preventDefault();
  }

  step(by) {
    const {order} = this.arranged, now = order.indexOf(this.chosen);
    const place = now < 0 ? 0 : Math.max(0, Math.min(order.length - 1, now + by));
    if (place === now || order.length === 0) return;
    this.choose(order[place]);
    this.view.scrollTo(place, false);
    this.tooltip.say(this.table.columns.map((column) => shownText(this.table, column, this.chosen)).join(', '));
  }

  resized() {
    this.view.resized();
    this.pictures.show(this.arranged.marked);
    this.draw(true);
    this.fit();
  }
}

// Buttons with a data-view, wherever they are on the page, choose the pictures of that kind.
const startViews = () => {
  const buttons = [...document.querySelectorAll('button[data-view]')];
  for (const button of buttons) {
    button.onclick = () => {
      document.body.dataset.view = button.dataset.view;
      for (const other of buttons) {
        if (other.ariaPressed !== null) other.ariaPressed = String(other.dataset.view === button.dataset.view);
      }
      dispatchEvent(new Event('viewchange'));
      if (button.ariaPressed === null) document.querySelector('.pictures').scrollIntoView({block: 'nearest'});
    };
  }
};

export const start = async () => {
  startTheme();
  const tooltip = createTooltip();
  for (const box of document.querySelectorAll('.table')) {
    const script = box.querySelector('script');
    try {
      const text = script.dataset.encoding === 'deflate' ? await inflate(script.textContent) : script.textContent;
      new Part(box, readTable(JSON.parse(text)), tooltip);
    } catch (error) {
      box.append('This browser cannot show the table: ' + error);
      console.error(error);
    }
  }
  startViews();
  startSections();
  document.documentElement.dataset.ready = '';
};
