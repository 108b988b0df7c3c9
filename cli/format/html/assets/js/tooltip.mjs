// The one tooltip of the page: a row with all its numbers. What is pointed at by keyboard is also read out.
import {titleOf} from './data.mjs';
import {add, element} from './dom.mjs';
import {fullText, visible} from './number.mjs';

const GAP = 18;  // pixels between the pointer and the tooltip

// Where a tooltip of `size` stands beside `at`, both in one direction: behind the pointer, or before it where there is
// more room.
export const beside = (at, size, room) => Math.max(4, at + GAP + size < room ? at + GAP : at - size - GAP);

export const createTooltip = () => {
  const tip = add(document.body, 'div', {id: 'tip', role: 'tooltip', hidden: true});
  const live = add(document.body, 'div', {id: 'live', className: 'hidden', ariaLive: 'polite'});
  let shown = '';  // which row of which table
  return {
    show(table, i, x, y, aloud) {
      const what = table.id + ' ' + i;
      if (shown !== what) {
        const rows = element('table');
        for (const column of table.columns) {
          const value = table.value(column, i);
          if (value === '' || value === 0 || value === null) continue;
          const tr = rows.insertRow();
          tr.dataset.key = column.name;
          tr.insertCell().textContent = column.title;
          tr.insertCell().textContent = fullText(column, value);
        }
        tip.replaceChildren(element('b', {}, visible(titleOf(table, i))), rows);
        tip.hidden = false;
        shown = what;
      }
      tip.style.left = beside(x, tip.offsetWidth, innerWidth) + 'px';
      tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - tip.offsetHeight - 6)) + 'px';
      if (aloud) live.textContent = tip.textContent;
    },
    hide() {
      tip.hidden = true;
      shown = '';
    },
    say(text) { live.textContent = text; }};
};
