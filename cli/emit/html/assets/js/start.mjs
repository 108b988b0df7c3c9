// Begins the page: the theme's button, every table with its filters and pictures, and the bar of sections. All numbers come
// from the JSON in the page; nothing is fetched.
import {createControls} from './controls.mjs';
import {inflate, readTable} from './data.mjs';
import {add, element} from './dom.mjs';
import {createFilter} from './filter.mjs';
import {createPictures} from './picture.mjs';
import {startSections} from './sections.mjs';
import {createTable, shownText} from './table.mjs';
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

const startTable = (box, table, tooltip) => {
  const narrow = matchMedia('(max-width:700px)'), filter = createFilter(table), {state} = filter;
  const {frame, head, scroller, bar} = createFrame(box, table);
  let arranged = filter.arrange(), hovered = -1, chosen = -1, pending = false;

  const draw = (always, view) => rows.draw({arranged, sum: filter.sum, state, chosen}, always, view);
  const hover = (i) => {
    if (hovered === i) return;
    hovered = i;
    pictures.ring(hovered, chosen);
  };
  const hide = () => {
    tooltip.hide();
    hover(-1);
  };
  const apply = () => {
    const view = rows.look();
    arranged = filter.arrange();
    pictures.show(arranged.marked);
    if (hovered >= 0 && !arranged.marked[hovered]) hide();
    draw(true, view);
    draw();  // a table that stands alone is as high as its rows
    controls.show(arranged);
  };
  const later = () => {  // at most one pass a frame, however fast the slider moves
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      apply();
    });
  };
  const toggle = (group) => {
    if (!state.open.delete(group)) state.open.add(group);
    hide();
    apply();
  };
  const choose = (i) => {
    chosen = chosen === i ? -1 : i;
    pictures.ring(hovered, chosen);
    draw(true);
  };
  // The arrows go through the rows; Enter opens a group or finds the row's point.
  const onKey = (event) => {
    const by = {ArrowDown: 1, ArrowUp: -1}[event.key], now = arranged.order.indexOf(chosen);
    if (event.target !== scroller) return;
    if (by && arranged.order.length) {
      const place = now < 0 ? 0 : Math.max(0, Math.min(arranged.order.length - 1, now + by));
      if (place !== now) choose(arranged.order[place]);
      rows.scrollTo(place, false);
      tooltip.say(table.columns.map((column) => shownText(table, column, chosen)).join(', '));
    } else if (event.key === 'Enter' && table.members.has(chosen)) {
      toggle(chosen);
    } else if (event.key === 'Escape' && chosen >= 0) {
      choose(chosen);
    } else {
      return;
    }
    event.preventDefault();
  };

  const pictures = createPictures(table, narrow, {
    marked: () => arranged.marked, hovered: () => hovered, hide,
    point(i, x, y, aloud) {
      hover(i);
      tooltip.show(table, i, x, y, aloud);
    },
    find(i) {
      if (table.members.has(i)) return toggle(i);
      choose(i);
      const place = arranged.order.indexOf(chosen);
      if (place >= 0) rows.scrollTo(place, true);
    },
    leave() {
      hide();
      if (chosen >= 0) choose(chosen);
    }});
  const rows = createTable(table, scroller, narrow.matches, {
    choose, toggle,
    sort(column) {
      state.down = state.sort === column ? !state.down : column.kind !== 'text';
      state.sort = column;
      scroller.scrollTop = 0;
      apply();
    },
    hover(i) {
      tooltip.hide();
      hover(i);
    }});
  const controls = createControls(table, filter, pictures, bar, head, later, () => filter.leaves(arranged));
  if (bar === head) addMore(frame, table, draw);
  scroller.addEventListener('scroll', () => draw(), {passive: true});
  scroller.addEventListener('keydown', onKey);
  const resized = () => {
    rows.forgetWidths();
    pictures.show(arranged.marked);
    draw(true);
  };
  addEventListener('resize', resized);
  addEventListener('viewchange', () => {
    hide();
    pictures.show(arranged.marked);
  });
  apply();
};

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
      startTable(box, readTable(JSON.parse(text)), tooltip);
    } catch (error) {
      box.append('This browser cannot show the table: ' + error);
      console.error(error);
    }
  }
  startViews();
  startSections();
  document.documentElement.dataset.ready = '';
};
